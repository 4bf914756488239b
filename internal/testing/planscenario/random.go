package planscenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/plan"
)

// templates are objects with random values: NUMBER, WORD and NAME, which is a part of their names.
var templates = []string{
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: c-NAME, labels: {WORD: WORD}}, data: {WORD: WORD, size: 'NUMBER'}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: i-NAME}, immutable: true, data: {color: WORD}}",
	"{apiVersion: v1, kind: Secret, metadata: {name: s-NAME, annotations: {example.com/WORD: WORD}}, stringData: {WORD: WORD}}",
	"{apiVersion: v1, kind: Service, metadata: {name: v-NAME}, spec: {selector: {app: WORD}, ports: [{name: WORD, port: NUMBER}, {name: last, port: 99}]}}",
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d-NAME}, spec: {replicas: NUMBER, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d, WORD: WORD}}, spec: {containers: [{name: WORD, image: WORD}, {name: last, image: WORD}]}}}}",
	"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: t-NAME}, spec: {serviceName: WORD, replicas: NUMBER, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: WORD}]}}}}",
	"{apiVersion: batch/v1, kind: Job, metadata: {name: j-NAME}, spec: {parallelism: NUMBER, template: {spec: {restartPolicy: Never, containers: [{name: a, image: WORD}]}}}}",
	"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r-NAME}, rules: [{apiGroups: [''], resources: [WORD], verbs: [get]}]}",
	"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b-NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: WORD}, subjects: [{kind: ServiceAccount, name: WORD, namespace: default}]}",
	"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n-NAME}, spec: {podSelector: {matchLabels: {app: WORD}}}}",
	"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: u-NAME}, spec: {minAvailable: NUMBER, selector: {matchLabels: {app: WORD}}}}",
}

// Random plans random sets in a namespace, applies each, and compares. No controller may change the objects, and no object may have
// a finalizer: its replacement would wait for a controller.
func Random(t *testing.T, c *dynamic.Client, sets int, seed uint64, copyOf func(context.Context, *testing.T) (*dynamic.Client, error)) {
	t.Helper()
	t.Logf("%d sets of seed %d", sets, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	namespace := client.NewNamespace(t, c)
	for i := range sets {
		passed := t.Run(fmt.Sprint("set ", i), func(t *testing.T) {
			e := &environment{Scenario: &Scenario{Force: random.IntN(2) == 0}, namespace: namespace}
			e.Client = e.prepared(c).WithDefaults(&dynamic.Defaults{FieldManager: []string{"one", "two"}[random.IntN(2)]})
			e.Objects = randomObjects(random)
			all := e.Objects
			opts := &plan.Options{
				Namespace: namespace, ForceConflicts: e.Force,
				Copy: func(ctx context.Context) (*dynamic.Client, error) { return copyOf(ctx, t) },
			}
			e.assertRejected(t, opts)
			for attempt := 1; e.Objects != "" && e.attempt(t, opts); attempt++ {
				require.Less(t, attempt, maxAttempts, "an object of the plan changes all the time")
			}
			if t.Failed() {
				t.Logf("set %d of seed %d:\n%s", i, seed, all)
			}
		})
		if !passed {
			return
		}
	}
}

func randomObjects(random *rand.Rand) string {
	var objects []string
	for _, template := range templates {
		if random.IntN(3) > 0 {
			continue
		}
		for strings.Contains(template, "WORD") {
			word := []string{"red", "blue", "green"}[random.IntN(3)]
			if random.IntN(50) == 0 {
				word = "Wrong_" // as a name or label
			}
			template = strings.Replace(template, "WORD", word, 1)
		}
		template = strings.ReplaceAll(template, "NUMBER", fmt.Sprint(random.IntN(4)+1))
		objects = append(objects, strings.ReplaceAll(template, "NAME", string(rune('a'+random.IntN(3)))))
	}
	return strings.Join(objects, "\n---\n")
}

// assertRejected applies the objects that are planned as rejected, and removes them from the set.
func (e *environment) assertRejected(t *testing.T, opts *plan.Options) {
	t.Helper()
	planned, err := plan.Objects(t.Context(), e.Client, e.objects(t, e.Objects), opts)
	require.NoError(t, err)
	rejected := map[string]bool{}
	for _, change := range planned.Changes {
		if change.Action != plan.Rejected {
			continue
		}
		rejected[change.Object.Name] = true // names are unique
		resource, err := e.ForObject(t.Context(), change.Want)
		require.NoError(t, err)
		_, err = resource.Apply(t.Context(), change.Want, &metav1.ApplyOptions{Force: e.Force})
		assert.Error(t, err, "%s is planned as rejected: %s", change.Object, change.Reason)
	}
	var remaining []string
	for text := range strings.SplitSeq(e.Objects, "\n---\n") {
		for _, obj := range e.objects(t, text) {
			if !rejected[obj.GetName()] {
				remaining = append(remaining, text)
			}
		}
	}
	e.Objects = strings.Join(remaining, "\n---\n")
}
