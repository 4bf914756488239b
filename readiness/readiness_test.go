package readiness

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

// checkStatus compares the status of an object, decoded and as a Lazy, with an expected one.
func checkStatus(t *testing.T, obj string, want Result, rules ...Rule) {
	t.Helper()
	decoded, err := unstructured.Decode([]byte(obj))
	require.NoError(t, err)
	assert.Equal(t, want, Compute(decoded, rules...))
	lazy, err := unstructured.As[unstructured.Lazy](decoded)
	require.NoError(t, err)
	assert.Equal(t, want, Compute(lazy, rules...), "of a Lazy")
	if want.Field != "" {
		_, err := unstructured.ParsePath(want.Field)
		require.NoError(t, err)
	}
}

func TestCompute_AnyKind(t *testing.T) {
	thing := func(metadata, status string) string {
		return `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"` + metadata + `},"status":` + status + `}`
	}
	conditions := func(conditions string) string { return `{"conditions":[` + conditions + `]}` }
	for name, tc := range map[string]struct {
		obj  string
		want Result
	}{
		"no status": {thing(``, `null`), Result{Current, "", "no condition or rule says otherwise"}},
		"no known condition": {thing(``, conditions(`{"type":"Synced","status":"False"}`)),
			Result{Current, "", "no condition or rule says otherwise"}},
		"deleted": {thing(`,"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/a","b"]`, conditions(`{"type":"Ready","status":"True"}`)),
			Result{Terminating, "metadata.deletionTimestamp", "being deleted since 2026-01-02T03:04:05Z, with the finalizers example.com/a, b"}},
		"not observed": {thing(`,"generation":3`, `{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}`),
			Result{InProgress, "status.observedGeneration", "generation 3 is not observed yet: status is of generation 2"}},
		"ready": {thing(`,"generation":3`, `{"observedGeneration":3,"conditions":[{"type":"Other","status":"False"},{"type":"Ready","status":"True","reason":"Made"}]}`),
			Result{Current, "status.conditions[type=Ready].status", "condition Ready is True: Made"}},
		"not ready": {thing(``, conditions(`{"type":"Ready","status":"False","reason":"Waiting","message":"for\n\u001b[31mit"}`)),
			Result{InProgress, "status.conditions[type=Ready].status", "condition Ready is False: Waiting: for it"}},
		"ready unknown": {thing(``, conditions(`{"type":"Ready","status":"Unknown"}`)),
			Result{InProgress, "status.conditions[type=Ready].status", "condition Ready is Unknown"}},
		"ready neither": {thing(``, conditions(`{"type":"Ready","status":"Perhaps"}`)),
			Result{Unknown, "status.conditions[type=Ready].status", `condition Ready has status "Perhaps"`}},
		"ready before": {thing(`,"generation":3`, conditions(`{"type":"Ready","status":"True","observedGeneration":2}`)),
			Result{InProgress, "status.conditions[type=Ready].observedGeneration", "condition Ready is of generation 2, the object is at 3"}},
		"reconciling": {thing(``, conditions(`{"type":"Ready","status":"True"},{"type":"Reconciling","status":"True","message":"at work"}`)),
			Result{InProgress, "status.conditions[type=Reconciling].status", "condition Reconciling is True: at work"}},
		"stalled": {thing(``, conditions(`{"type":"Reconciling","status":"False"},{"type":"Stalled","status":"True","reason":"Denied"}`)),
			Result{Failed, "status.conditions[type=Stalled].status", "condition Stalled is True: Denied"}},
		"stalled before": {thing(`,"generation":2`, conditions(`{"type":"Stalled","status":"True","observedGeneration":1}`)),
			Result{InProgress, "status.conditions[type=Stalled].observedGeneration", "condition Stalled is of generation 1, the object is at 2"}},
		"status of another type": {thing(`,"generation":2`, `"ready"`),
			Result{Unknown, "status.conditions", ".status: is string, not map[string]any or []any"}},
		"generation of another type": {thing(`,"generation":"2"`, `{"observedGeneration":1}`),
			Result{Unknown, "metadata.generation", ".metadata.generation: is string, not int64"}},
		"conditions of another type": {thing(``, `{"conditions":{}}`),
			Result{Unknown, "status.conditions", ".status.conditions: is map[string]interface {}, not a list"}},
		"condition of another type": {thing(``, conditions(`"Ready"`)),
			Result{Unknown, "status.conditions", ".status.conditions[0]: is string, not an object"}},
		"condition's status of another type": {thing(``, conditions(`{"type":"Ready","status":true}`)),
			Result{Unknown, "status.conditions", ".status.conditions[0].status: is bool, not string"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.obj, tc.want) })
	}
}

func TestCompute_NilIsUnknown(t *testing.T) {
	want := Result{Status: Unknown, Message: "there is no object"}
	assert.Equal(t, want, Compute[*unstructured.Object](nil))
	assert.Equal(t, want, Compute[*unstructured.Lazy](nil))
}

func TestCompute_BoundsMessage(t *testing.T) {
	obj := &unstructured.Object{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "message": strings.Repeat("long ", 10_000)}}}}}
	result := Compute(obj)
	assert.Equal(t, InProgress, result.Status)
	assert.LessOrEqual(t, len(result.Message), maxMessage)
	assert.Greater(t, len(result.Message), maxMessage/2)
	assert.Equal(t, "InProgress: condition Ready", result.String()[:27])
}

func TestCompute_LeavesObjectUnchanged(t *testing.T) {
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "status": map[string]any{"replicas": int64(1)}}}
	before := obj.DeepCopy()
	Compute(obj)
	assert.Equal(t, before, obj)
}
