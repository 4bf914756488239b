package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/unstructured"
)

// referringObjects refer to each other. Controllers neither make pods of the deployment nor schedule the pod.
const referringObjects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  paused: true
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: robot
      volumes: [{name: s, secret: {secretName: password}}, {name: d, persistentVolumeClaim: {claimName: data}}]
      containers:
      - name: web
        image: web
        env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]
        envFrom: [{configMapRef: {name: extra, optional: true}}, {secretRef: {name: missing}}]
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, labels: {app: web}}
spec:
  serviceAccountName: robot
  automountServiceAccountToken: false
  schedulingGates: [{name: example.com/never}]
  volumes: [{name: s, secret: {secretName: password}}]
  containers: [{name: web, image: web, envFrom: [{secretRef: {name: password}}]}]
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {tls: [{secretName: password}], defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [configmaps, pods, serviceaccounts], verbs: [get, list]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: robot, namespace: $NS}]
`

// bindings bind the ServiceAccount from outside its namespace.
const bindings = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $OWN}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:discovery}
subjects: [{kind: ServiceAccount, name: robot, namespace: $OWN}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: outside}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:discovery}
subjects: [{kind: ServiceAccount, name: robot, namespace: $OWN}]
`

// createReferences creates the objects. A ConfigMap is owned by the deployment. The namespace outside is ordered after the fixtures'.
func createReferences(t *testing.T, o *oracle) (outside string) {
	t.Helper()
	namespaces := []string{client.NewNamespace(t, o.client), client.NewNamespace(t, o.client)}
	o.fixtures = slices.Min(namespaces)
	outside = slices.Max(namespaces)
	o.apply(t, o.fixtures, referringObjects)
	o.apply(t, outside, strings.ReplaceAll(bindings, "$OWN", o.fixtures))
	web, err := client.Resource(t, o.client, "deployments").Namespace(o.fixtures).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	owned := &unstructured.Object{Object: map[string]any{}}
	owned.SetName("owned")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: web.GetUID()}})
	_, err = client.Resource(t, o.client, "configmaps").Namespace(o.fixtures).Create(t.Context(), owned, nil)
	require.NoError(t, err)
	return outside
}

func TestAnyctl_References(t *testing.T) {
	o := newPrograms(t)
	outside := createReferences(t, o)
	for _, c := range []struct {
		line, stdout, stderr string
		fails                bool
	}{
		{"who secret/password --referrers", `
RELATION OBJECT NAMESPACE FIELD
mounts deployment.apps/web $NS spec.template.spec.volumes[*].secret.secretName
refers ingress.networking.k8s.io/web $NS spec.tls[*].secretName
mounts pod/web-0 $NS spec.volumes[*].secret.secretName
refers pod/web-0 $NS spec.containers[*].envFrom[*].secretRef.name`, "", false},
		{"who secret password --referrers -o name", "\ndeployment.apps/web\ningress.networking.k8s.io/web\npod/web-0", "", false},
		{"who sa robot --referrers", `
RELATION OBJECT NAMESPACE FIELD
binds clusterrolebinding.rbac.authorization.k8s.io/$NS - subjects[*]
refers deployment.apps/web $NS spec.template.spec.serviceAccountName
refers pod/web-0 $NS spec.serviceAccountName
binds rolebinding.rbac.authorization.k8s.io/readers $NS subjects[*]
binds rolebinding.rbac.authorization.k8s.io/outside $OUT subjects[*]`, "", false},
		{"who deploy/web --referrers --owned -o jq='.relation + \" \" + .field'", `
owner metadata.ownerReferences[0]
scales spec.scaleTargetRef`, "", false},
		{"who cm/owned --referrers", "", `No references to configmaps "owned" found`, false},
		{"who cm/owned --referrers -o jsonpath={.kind}{.items}", "\nList[]", "", false},
		{"who sa/robot --referrers --as=system:serviceaccount:$NS:robot", `
RELATION OBJECT NAMESPACE FIELD
refers pod/web-0 $NS spec.serviceAccountName
binds rolebinding.rbac.authorization.k8s.io/readers $NS subjects[*]`, `
Warning: incomplete: no permission to list podtemplates, replicationcontrollers, daemonsets.apps, deployments.apps, replicasets.apps, statefulsets.apps, cronjobs.batch, jobs.batch
Warning: incomplete outside the namespace: no permission to list clusterrolebindings.rbac.authorization.k8s.io, rolebindings.rbac.authorization.k8s.io`, false},
		{"who cm/none --referrers", "", `Error from server (NotFound): configmaps "none" not found`, true},
		{"who cm/owned data --referrers", "", "error: --referrers takes no field\nSee 'anyctl who -h' for help and examples", true},
		{"who cm/owned -o json", "", "error: -o and --owned are for --referrers\nSee 'anyctl who -h' for help and examples", true},
		{"who cm/owned --referrers -o nonsense=", "", "error: unable to match a printer suitable for the output format \"nonsense=\", *", true},
		{"__complete who cm --referrers ow", "\nowned\n:4", "Completion ended with directive: ShellCompDirectiveNoFileComp", false},
		{"tree deploy/web --references --exit-code", `
OBJECT STATUS AGE MESSAGE
Deployment/web *
├─mounts Secret/password Current AGE
├─mounts PersistentVolumeClaim/data *
├─refers ConfigMap/settings Current AGE
├─refers ConfigMap/extra NotFound <unknown> optional
├─refers Secret/missing NotFound <unknown>
├─refers ServiceAccount/robot Current AGE
└─ConfigMap/owned Current AGE`, "", true},
		{"tree rolebinding/outside -n $OUT --references --exit-code", `
OBJECT NAMESPACE STATUS AGE MESSAGE
RoleBinding/outside $OUT Current AGE
├─binds ClusterRole/system:discovery Current AGE
└─binds ServiceAccount/robot $NS Current AGE`, "", false},
		{"tree networkpolicy/web --references", `
OBJECT STATUS AGE MESSAGE
NetworkPolicy/web Current AGE
└─selects Pod/web-0 InProgress *`, "", false},
	} {
		line := strings.ReplaceAll(c.line, "$OUT", outside)
		r := o.anyctl.run(t, &oracleCase{line: line}, o.fixtures, o.kubectl)
		replace := strings.NewReplacer("$NS", o.fixtures, "$OUT", outside)
		assertLines(t, line, replace.Replace(c.stdout), r.stdout)
		assertLines(t, line, replace.Replace(c.stderr), r.stderr)
		assert.Equal(t, c.fails, r.code != 0, "%s: exit code %d\n%s", line, r.code, r.stderr)
	}
	assertEdgesEqual(t, o)
}

// assertLines compares lines with single spaces. In want, "*" is the rest of a line, and AGE an age.
func assertLines(t *testing.T, line, want, got string) {
	t.Helper()
	var lines []string
	for text := range strings.Lines(got) {
		lines = append(lines, strings.Join(strings.Fields(text), " "))
	}
	wanted := strings.Split(strings.TrimPrefix(want, "\n"), "\n")
	if want == "" {
		wanted = nil
	}
	if !assert.Len(t, lines, len(wanted), "%s: %s", line, got) {
		return
	}
	for i, text := range wanted {
		if begin, isOpen := strings.CutSuffix(text, "*"); isOpen {
			assert.True(t, strings.HasPrefix(lines[i], begin), "%s: %q, not %q", line, lines[i], text)
			continue
		}
		if begin, isAge := strings.CutSuffix(text, "AGE"); isAge {
			rest, hasPrefix := strings.CutPrefix(lines[i], begin)
			assert.True(t, hasPrefix && !strings.Contains(rest, " "), "%s: %q, not %q", line, lines[i], text)
			continue
		}
		assert.Equal(t, text, lines[i], line)
	}
}

// assertEdgesEqual compares who --referrers with the edges in a cache.
func assertEdgesEqual(t *testing.T, o *oracle) {
	t.Helper()
	objects := inventory.NewCache(o.client, nil)
	stopped := make(chan error, 1)
	ctx := t.Context()
	go func() { stopped <- objects.Run(ctx) }()
	t.Cleanup(func() { assert.ErrorIs(t, <-stopped, context.Canceled) })
	require.NoError(t, objects.WaitForSync(ctx))
	for _, name := range []string{
		"configmaps/settings", "secrets/password", "serviceaccounts/robot", "persistentvolumeclaims/data", "pods/web-0", "services/web",
		"deployments/web", "roles/reader", "clusterroles/system:discovery",
	} {
		resource, object, _ := strings.Cut(name, "/")
		handle := dynamic.As[unstructured.Lazy](client.Resource(t, o.client, resource))
		if handle.APIResource().Namespaced {
			handle = handle.Namespace(o.fixtures)
		}
		target, err := handle.Get(ctx, object, nil)
		require.NoError(t, err)
		edges, err := objects.EdgesTo(ctx, target, relation.BuiltIn())
		require.NoError(t, err)
		assert.NotEmpty(t, edges, name)
		var want []string
		for _, e := range edges {
			want = append(want, fmt.Sprint(e.Relation, " ", e.Kind, " ", e.Namespace, "/", e.Name, " ", e.Entry.UID(), " ", e.Field))
		}
		slices.Sort(want)
		assert.Equal(t, want, referrers(t, o, name), name)
	}
}

// referrers returns the items of who --referrers -o json.
func referrers(t *testing.T, o *oracle, name string) (all []string) {
	t.Helper()
	r := o.anyctl.run(t, &oracleCase{line: "who " + name + " --referrers -o json"}, o.fixtures, o.kubectl)
	require.Empty(t, r.stderr)
	var list struct {
		Items []struct {
			metav1.PartialObjectMetadata
			Relation, Field string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &list))
	for _, item := range list.Items {
		kind := schema.FromAPIVersionAndKind(item.APIVersion, item.Kind).GroupKind()
		all = append(all, fmt.Sprint(item.Relation, " ", kind, " ", item.Namespace, "/", item.Name, " ", item.UID, " ", item.Field))
	}
	slices.Sort(all)
	return all
}
