//go:build unix

package measure

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"text/template"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// setKinds are the kinds of a set: objects of ten kinds with the fields of a usual manifest.
var setKinds = [SetKinds]string{
	`{apiVersion: v1, kind: ConfigMap, data: {color: red, size: "{{.}}", settings: "a: 1\nb: 2\n"}}`,
	`{apiVersion: v1, kind: Secret, type: Opaque, data: {password: cGFzc3dvcmQ=, user: dXNlcg==}}`,
	`{apiVersion: v1, kind: ServiceAccount, automountServiceAccountToken: false}`,
	`{apiVersion: v1, kind: Service, spec: {selector: {app: web{{.}}}, ports: [{name: http, port: 80, targetPort: http}, {name: metrics, port: 9090}]}}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods, services], verbs: [get, list, watch]}]}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role},
	  subjects: [{kind: ServiceAccount, name: web, namespace: default}]}`,
	`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2, selector: {matchLabels: {app: web{{.}}}}, template: {metadata: {labels: {app: web{{.}}}}, spec: {
	  serviceAccountName: web, securityContext: {runAsNonRoot: true}, containers: [{name: web, image: "nginx:{{.}}", args: [--port, "80"],
	  ports: [{name: http, containerPort: 80}], env: [{name: COLOR, valueFrom: {configMapKeyRef: {name: web, key: color}}}, {name: SIZE, value: "{{.}}"}],
	  resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}, readinessProbe: {httpGet: {path: /, port: http}},
	  volumeMounts: [{name: settings, mountPath: /settings}]}], volumes: [{name: settings, configMap: {name: web}}]}}}}`,
	`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {matchLabels: {app: web{{.}}}}, policyTypes: [Ingress],
	  ingress: [{from: [{podSelector: {matchLabels: {app: proxy}}}], ports: [{port: 80, protocol: TCP}]}]}}`,
	`{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{host: web{{.}}.example.com, http: {paths: [{path: /, pathType: Prefix,
	  backend: {service: {name: web, port: {name: http}}}}]}}]}}`,
	`{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {app: web{{.}}}}}}`,
}

// SetKinds is the number of kinds of a set.
const SetKinds = 10

// SetObjects returns the objects of a set in a namespace, in turn of ten kinds.
func SetObjects(namespace string, count int) ([]*unstructuredv1.Unstructured, error) {
	var all []*unstructuredv1.Unstructured
	for i := range count {
		var text strings.Builder
		if err := template.Must(template.New("").Parse(setKinds[i%SetKinds])).Execute(&text, i); err != nil {
			return nil, err
		}
		obj := &unstructuredv1.Unstructured{}
		if err := yaml.Unmarshal([]byte(text.String()), &obj.Object); err != nil {
			return nil, err
		}
		obj.SetNamespace(namespace)
		obj.SetName(fmt.Sprintf("web-%d", i))
		obj.SetLabels(map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": fmt.Sprint("web-", i)})
		all = append(all, obj)
	}
	return all, nil
}

// Applier is a program that applies and prunes a set. Requests counts its requests.
type Applier struct {
	// Apply applies objects and returns the number of created, changed and deleted objects. previous are the objects of the call
	// before. Objects that left the set are deleted.
	Apply    func(ctx context.Context, objects, previous []*unstructuredv1.Unstructured) (changes int, err error)
	Requests *atomic.Int64
}

// SetStage is a stage of a set: its objects, and the number of objects that an apply of them creates, changes and deletes.
type SetStage struct {
	Name    string
	Objects []*unstructuredv1.Unstructured
	Changes int
}

// SetStages returns the stages of a set: the first apply, the same unchanged, a changed object, and a set without a tenth of its
// objects.
func SetStages(namespace string, count int) ([]SetStage, error) {
	objects, err := SetObjects(namespace, count)
	if err != nil {
		return nil, err
	}
	changed := deepCopy(objects)
	if err := unstructuredv1.SetNestedField(changed[0].Object, "green", "data", "color"); err != nil {
		return nil, err
	}
	return []SetStage{
		{"first", objects, count},
		{"unchanged", objects, 0},
		{"changed", changed, 1},
		{"prune", changed[:count-count/10], count / 10},
	}, nil
}

// ApplySet measures an applier in the stages of a set. Each has the figures of [Meter.Stage], and STAGE-requests. All objects are
// deleted at the end.
func ApplySet(ctx context.Context, m *Meter, applier *Applier) error {
	stages, err := SetStages(m.Namespace, m.Count)
	if err != nil {
		return err
	}
	var previous []*unstructuredv1.Unstructured
	for _, stage := range stages {
		applied := deepCopy(stage.Objects) // an applier may change them
		before := applier.Requests.Load()
		changes := 0
		err := m.Stage(stage.Name, func() (err error) {
			changes, err = applier.Apply(ctx, applied, previous)
			return err
		})
		if err == nil && changes != stage.Changes {
			err = fmt.Errorf("%d objects were changed instead of %d", changes, stage.Changes)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", stage.Name, err)
		}
		m.Figures[stage.Name+"-requests"] = float64(applier.Requests.Load() - before)
		previous = stage.Objects
	}
	m.SeeAll()
	_, err = applier.Apply(ctx, nil, previous)
	return err
}

func deepCopy(objects []*unstructuredv1.Unstructured) []*unstructuredv1.Unstructured {
	copied := make([]*unstructuredv1.Unstructured, len(objects))
	for i, obj := range objects {
		copied[i] = obj.DeepCopy()
	}
	return copied
}
