package oracle

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// kubectlCase is an object of kubectl apply that each program then applies.
type kubectlCase struct {
	name string
	// before are lines of kubectl. Standard input of each is first.
	before []string
	first  string
	// steps are the objects that each program applies. flags follow apply --server-side -f -.
	steps []string
	flags string
	// object is TYPE/NAME of the object to compare, with managedFields and the annotation last-applied-configuration.
	object string
	// fails requires an exit code other than 0 of every step.
	fails   bool
	differs *difference
}

func kubectlCases() []kubectlCase {
	const apply = "apply -f -"
	const colors = `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {app: web}}, data: {color: blue, shape: round}}`
	const changed = `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {color: red}}`
	return []kubectlCase{
		{name: "unchanged", before: []string{apply}, first: colors, steps: []string{colors}, object: "cm/one"},
		{name: "changed value", before: []string{apply}, first: colors, steps: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {app: db}}, data: {color: red, shape: round}}`}, object: "cm/one"},
		{name: "removed fields", before: []string{apply}, first: colors, steps: []string{changed}, object: "cm/one"},
		{name: "applied twice", before: []string{apply}, first: colors, steps: []string{changed, colors, colors}, object: "cm/one"},
		{name: "annotations", before: []string{apply, "annotate cm one note=hand"}, first: colors, steps: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, annotations: {team: a}}, data: {color: blue}}`}, object: "cm/one"},
		{name: "dry run", differs: &difference{[]string{"stderr"}, "kubectl warns that its dry run cannot move the annotation"}, before: []string{apply}, first: colors, steps: []string{changed}, flags: "--dry-run=server", object: "cm/one"},
		{name: "forced", before: []string{apply}, first: colors, steps: []string{changed}, flags: "--force-conflicts", object: "cm/one"},
		{name: "conflict with others", before: []string{apply, `patch cm one -p '{"data":{"color":"green"}}'`}, first: colors, steps: []string{changed}, object: "cm/one", fails: true},
		{name: "fields of others", before: []string{apply, `patch cm one -p '{"data":{"size":"3"}}'`}, first: colors, steps: []string{changed}, object: "cm/one"},
		{name: "own manager unchanged", before: []string{apply}, first: colors, steps: []string{colors}, flags: "--field-manager=mine", object: "cm/one"},
		{name: "own manager changed", before: []string{apply}, first: colors, steps: []string{changed}, flags: "--field-manager=mine", object: "cm/one", fails: true},
		{name: "manager kubectl", before: []string{apply}, first: colors, steps: []string{changed, colors}, flags: "--field-manager=kubectl", object: "cm/one"},
		{name: "client-side manager of a name", before: []string{"apply --field-manager=mine -f -"}, first: colors, steps: []string{changed}, object: "cm/one"},
		{name: "created with save-config", before: []string{"create --save-config -f -"}, first: colors, steps: []string{changed}, object: "cm/one"},
		{name: "edited", before: []string{apply, "label cm one tier=x", "annotate cm one a=b"}, first: colors, steps: []string{changed, colors}, object: "cm/one"},
		{name: "deployment", before: []string{apply}, first: webDeployment, steps: []string{changedDeployment}, object: "deploy/web"},
		{name: "deployment scaled", before: []string{apply, "scale deploy web --replicas=5"}, first: webDeployment, steps: []string{withoutReplicas}, object: "deploy/web"},
		{name: "deployment restarted", before: []string{apply, "rollout restart deploy web"}, first: webDeployment, steps: []string{changedDeployment}, object: "deploy/web"},
		{name: "two versions", fails: true, differs: &difference{
			[]string{"stdout", "stderr", "code", "effect"}, "kubectl has conflicts with its own fields of a further API version, anyctl moves them",
		}, before: []string{apply}, first: oldAutoscaler, steps: []string{newAutoscaler, newAutoscaler}, object: "hpa/web"},
		{name: "default manager by name", before: []string{apply}, first: colors, steps: []string{changed}, flags: "--field-manager=$SELF", object: "cm/one"},
		{name: "list", before: []string{apply}, first: `{apiVersion: v1, kind: List, items: [` + colors + `]}`, steps: []string{`{apiVersion: v1, kind: List, items: [` + changed + `]}`}, object: "cm/one"},
		{name: "custom kind", before: []string{apply}, first: setGadget, steps: []string{strings.ReplaceAll(setGadget, "3", "4")}, object: "gadgets/applied"},
		{name: "server-side", before: []string{"apply --server-side -f -"}, first: colors, steps: []string{changed, colors}, object: "cm/one"},
		{name: "server-side deployment", before: []string{"apply --server-side -f -"}, first: webDeployment, steps: []string{changedDeployment}, object: "deploy/web"},
		{name: "server-side after client-side", before: []string{apply, "apply --server-side -f -"}, first: colors, steps: []string{changed}, object: "cm/one"},
		{name: "server-side dry run", before: []string{"apply --server-side -f -"}, first: colors, steps: []string{changed}, flags: "--dry-run=server", object: "cm/one"},
	}
}

// TestApply_ObjectsOfKubectl compares anyctl apply with kubectl apply --server-side, for objects that kubectl has applied.
func TestApply_ObjectsOfKubectl(t *testing.T) {
	o := newSetOracle(t)
	for _, c := range kubectlCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := o.applyOver(t, &c, o.kubectl)
			got := o.applyOver(t, &c, o.anyctl)
			for i := range want {
				assert.Equal(t, c.fails, want[i].code != 0, "kubectl's exit code is %d; stderr:\n%s", want[i].code, want[i].stderr)
				assertSame(t, "", c.differs, &want[i], &got[i])
			}
		})
	}
}

// applyOver applies the objects of a case with kubectl and then with p. It returns a result for each step.
func (o *oracle) applyOver(t *testing.T, c *kubectlCase, p *program) []result {
	t.Helper()
	namespace := client.NewKeptNamespace(t, o.client)
	for _, line := range c.before {
		r := o.kubectl.run(t, &oracleCase{line: line, stdin: c.first}, namespace, nil)
		require.Zero(t, r.code, "%s: %s", line, r.stderr)
	}
	masks := compileMasks([]mask{
		{`\b` + namespace + `\b`, "NAMESPACE"}, {`manager: (kubectl|anyctl)\n`, "manager: SELF\n"}, {`"(kubectl|anyctl)"`, `"SELF"`},
	}, commonMasks[:3])
	var results []result
	for _, step := range c.steps {
		r := p.run(t, &oracleCase{line: "apply --server-side -f - " + strings.ReplaceAll(c.flags, "$SELF", filepath.Base(p.path)), stdin: step}, namespace, nil)
		r.effect = o.stored(t, namespace, c.object)
		for _, text := range []*string{&r.stdout, &r.stderr, &r.effect} {
			*text = apply(masks, *text)
		}
		results = append(results, r)
	}
	return results
}

// stored returns an object as YAML, with managedFields, without what controllers write.
func (o *oracle) stored(t *testing.T, namespace, pair string) string {
	t.Helper()
	kind, name, _ := strings.Cut(pair, "/")
	obj, err := client.Resource(t, o.client, kind).Namespace(namespace).Get(t.Context(), name, nil)
	require.NoError(t, err)
	delete(obj.Object, "status")
	entries := obj.GetManagedFields()
	kept := entries[:0]
	for _, entry := range entries {
		if entry.Time = nil; entry.Subresource != "status" { // entries are sorted by time
			kept = append(kept, entry)
		}
	}
	slices.SortFunc(kept, func(a, b metav1.ManagedFieldsEntry) int { return strings.Compare(own(a.Manager), own(b.Manager)) })
	obj.SetManagedFields(kept)
	annotations := obj.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision") // a controller adds it at some time
	if len(annotations) == 0 {
		annotations = nil
	}
	obj.SetAnnotations(annotations)
	obj.SetGeneration(0)
	data, err := unstructured.EncodeYAML(obj)
	require.NoError(t, err)
	return string(data)
}

// own replaces the name of anyctl's manager.
func own(manager string) string { return strings.ReplaceAll(manager, "anyctl", "kubectl") }

const changedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:2"}]}
`

const oldAutoscaler = `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web, labels: {app: web}}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4, targetCPUUtilizationPercentage: 50}
`

const newAutoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 6
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
`

const withoutReplicas = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:2"}]}
`
