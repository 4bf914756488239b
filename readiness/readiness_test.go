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
	checkStatusWith(t, obj, want, &Options{Rules: rules})
}

func checkStatusWith(t *testing.T, obj string, want Result, opts *Options) {
	t.Helper()
	decoded, err := unstructured.Decode([]byte(obj))
	require.NoError(t, err)
	assert.Equal(t, want, Compute(decoded, opts))
	lazy, err := unstructured.As[unstructured.Lazy](decoded)
	require.NoError(t, err)
	assert.Equal(t, want, Compute(lazy, opts), "of a Lazy")
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
		"no known condition": {thing(``, conditions(`{"type":"Serving","status":"False"}`)),
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
			Result{InProgress, "status.conditions[type=Ready].status", "condition Ready is Perhaps"}},
		"ready without a status": {thing(``, conditions(`{"type":"Ready"}`)),
			Result{InProgress, "status.conditions[type=Ready].status", "condition Ready is empty"}},
		"ready before": {thing(`,"generation":3`, conditions(`{"type":"Ready","status":"True","observedGeneration":2}`)),
			Result{InProgress, "status.conditions[type=Ready].observedGeneration", "condition Ready is of generation 2, the object is at 3"}},
		"reconciling": {thing(``, conditions(`{"type":"Ready","status":"True"},{"type":"Reconciling","status":"True","message":"at work"}`)),
			Result{InProgress, "status.conditions[type=Reconciling].status", "condition Reconciling is True: at work"}},
		"stalled": {thing(``, conditions(`{"type":"Reconciling","status":"False"},{"type":"Stalled","status":"True","reason":"Denied"}`)),
			Result{Failed, "status.conditions[type=Stalled].status", "condition Stalled is True: Denied"}},
		"stalled before": {thing(`,"generation":2`, conditions(`{"type":"Stalled","status":"True","observedGeneration":1}`)),
			Result{InProgress, "status.conditions[type=Stalled].observedGeneration", "condition Stalled is of generation 1, the object is at 2"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.obj, tc.want) })
	}
}

// A field of an unexpected type is mentioned, and the next rules decide.
func TestCompute_MentionsUnexpectedTypes(t *testing.T) {
	const otherwise = "no condition or rule says otherwise; "
	for name, tc := range map[string]struct {
		generation, status string
		want               Result
	}{
		"status":                    {`2`, `"ready"`, Result{Current, "", otherwise + ".status: is string, not map[string]any or []any"}},
		"generation":                {`"2"`, `{"observedGeneration":1}`, Result{Current, "", otherwise + ".metadata.generation: is string, not int64"}},
		"conditions":                {`2`, `{"conditions":{}}`, Result{Current, "", otherwise + ".status.conditions: is map[string]interface {}, not a list"}},
		"condition":                 {`2`, `{"conditions":["Ready"]}`, Result{Current, "", otherwise + ".status.conditions[0]: is string, not an object"}},
		"parents of something else": {`2`, `{"parents":"a","listeners":3,"ancestors":[1,{"conditions":2}]}`, Result{Current, "", "no condition or rule says otherwise"}},
		"observedGeneration and Ready": {`2`, `{"observedGeneration":"1","conditions":[{"type":"Ready","status":"False"}]}`,
			Result{InProgress, "status.conditions[type=Ready].status", "condition Ready is False; .status.observedGeneration: is string, not int64"}},
		"status of Ready": {`2`, `{"conditions":[{"type":"Ready","status":true}]}`,
			Result{Current, "status.conditions[type=Ready].status", "condition Ready is True; .status.conditions[0].status: is bool, not string"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkStatus(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":`+tc.generation+`},"status":`+tc.status+`}`, tc.want)
		})
	}
}

func TestCompute_UnexpectedTypeInBuiltinKind(t *testing.T) {
	const conditions = "status.conditions"
	for name, tc := range map[string]struct {
		generation, status string
		want               Result
	}{
		"conditions":         {`1`, `"conditions":"x"`, Result{Unknown, conditions, ".status.conditions: is string, not a list"}},
		"condition":          {`1`, `"conditions":["x"]`, Result{Unknown, conditions, ".status.conditions[0]: is string, not an object"}},
		"status":             {`1`, `"conditions":[{"type":"Ready","status":1}]`, Result{Unknown, conditions, ".status.conditions[0].status: is int64, not string"}},
		"generation":         {`"1"`, `"observedGeneration":1`, Result{Unknown, "metadata.generation", ".metadata.generation: is string, not int64"}},
		"observedGeneration": {`1`, `"observedGeneration":"1"`, Result{Unknown, "status.observedGeneration", ".status.observedGeneration: is string, not int64"}},
	} {
		for _, kind := range []string{`"apps/v1","kind":"Deployment"`, `"v1","kind":"Pod"`, `"batch/v1","kind":"Job"`, `"v1","kind":"ConfigMap"`} {
			t.Run(name+" of "+kind, func(t *testing.T) {
				obj := `{"apiVersion":` + kind + `,"metadata":{"generation":` + tc.generation + `},"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z",` + tc.status + `}}`
				checkStatus(t, obj, tc.want)
			})
		}
	}
}

func TestCompute_PositiveConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   Result
	}{
		"invalid":          {`"conditions":[{"type":"Ready","status":"True"},{"type":"Valid","status":"False","reason":"NoRoute"}]`, Result{InProgress, "status.conditions[type=Valid].status", "condition Valid is False: NoRoute"}},
		"not synced":       {`"conditions":[{"type":"Ready","status":"False"},{"type":"Synced","status":"False","reason":"ReconcileError"}]`, Result{InProgress, "status.conditions[type=Synced].status", "condition Synced is False: ReconcileError"}},
		"not reconciled":   {`"conditions":[{"type":"Reconciled","status":"Unknown"}]`, Result{InProgress, "status.conditions[type=Reconciled].status", "condition Reconciled is Unknown"}},
		"not accepted":     {`"conditions":[{"type":"Accepted","status":"Unknown","reason":"Pending","message":"Waiting for controller"}]`, Result{InProgress, "status.conditions[type=Accepted].status", "condition Accepted is Unknown: Pending: Waiting for controller"}},
		"synced before":    {`"conditions":[{"type":"Synced","status":"True","observedGeneration":2}]`, Result{InProgress, "status.conditions[type=Synced].observedGeneration", "condition Synced is of generation 2, the object is at 3"}},
		"degraded":         {`"conditions":[{"type":"Reconciled","status":"True"},{"type":"Available","status":"Degraded"}]`, Result{InProgress, "status.conditions[type=Available].status", "condition Available is Degraded"}},
		"synced":           {`"conditions":[{"type":"Synced","status":"True"}]`, Result{Current, "status.conditions[type=Synced].status", "condition Synced is True"}},
		"synced and ready": {`"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"True"}]`, Result{Current, "status.conditions[type=Ready].status", "condition Ready is True"}},
		"stalled": {`"conditions":[{"type":"Valid","status":"False"},{"type":"Stalled","status":"True","reason":"Invalid"}]`,
			Result{Failed, "status.conditions[type=Stalled].status", "condition Stalled is True: Invalid"}},
		"no parent": {`"parents":[]`, Result{InProgress, "status.parents", "no parent has reported yet"}},
		"a parent":  {`"parents":[{"conditions":[{"type":"Accepted","status":"True"}]}]`, Result{Current, "status.parents[0].conditions[type=Accepted].status", "condition Accepted is True"}},
		"one parent of two": {`"parents":[{"conditions":[{"type":"Accepted","status":"True"}]},{"conditions":[{"type":"Accepted","status":"True"},{"type":"ResolvedRefs","status":"False","reason":"BackendNotFound"}]}]`,
			Result{InProgress, "status.parents[1].conditions[type=ResolvedRefs].status", "condition ResolvedRefs is False: BackendNotFound"}},
		"a parent before": {`"parents":[{"conditions":[{"type":"Accepted","status":"True","observedGeneration":1}]}]`,
			Result{InProgress, "status.parents[0].conditions[type=Accepted].observedGeneration", "condition Accepted is of generation 1, the object is at 3"}},
		"an ancestor": {`"ancestors":[{"conditions":[{"type":"Accepted","status":"False","reason":"TargetNotFound"}]}]`,
			Result{InProgress, "status.ancestors[0].conditions[type=Accepted].status", "condition Accepted is False: TargetNotFound"}},
		"a listener": {`"conditions":[{"type":"Programmed","status":"True"}],"listeners":[{"conditions":[{"type":"Programmed","status":"False","reason":"PortUnavailable"}]}]`,
			Result{InProgress, "status.listeners[0].conditions[type=Programmed].status", "condition Programmed is False: PortUnavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkStatus(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":3},"spec":{"parentRefs":[{"name":"a"}]},"status":{`+tc.status+`}}`, tc.want)
		})
	}
}

// Nobody has written the status of these objects.
func TestCompute_WithoutStatus(t *testing.T) {
	yes := true
	no := false
	current := Result{Status: Current, Message: "no condition or rule says otherwise"}
	unknown := Result{Status: Current, Message: "there is no status, and it is not known whether the kind has the subresource status"}
	unwritten := Result{InProgress, "status", "no controller has reported yet"}
	for name, tc := range map[string]struct {
		apiVersion, status string
		subresource        *bool
		want               Result
	}{
		"none":               {"example.com/v1", `null`, &yes, unwritten},
		"empty":              {"example.com/v1", `{}`, &yes, unwritten},
		"in k8s.io":          {"gateway.networking.k8s.io/v1", `null`, &yes, unwritten},
		"written":            {"example.com/v1", `{"phase":"Done"}`, &yes, current},
		"of another type":    {"example.com/v1", `0`, &yes, Result{Status: Current, Message: current.Message + "; .status: is int64, not map[string]any or []any"}},
		"no subresource":     {"example.com/v1", `null`, &no, current},
		"offline":            {"example.com/v1", `null`, nil, unknown},
		"offline, written":   {"example.com/v1", `{"phase":"Done"}`, nil, current},
		"built-in kind":      {"networking.k8s.io/v1", `{}`, &yes, current},
		"built-in core kind": {"v1", `{}`, nil, current},
	} {
		t.Run(name, func(t *testing.T) {
			obj := `{"apiVersion":"` + tc.apiVersion + `","kind":"Thing","status":` + tc.status + `}`
			checkStatusWith(t, obj, tc.want, &Options{StatusSubresource: tc.subresource})
		})
	}
	without := Rule{Group: "example.com", Kind: "Thing"} // a kind without a controller
	checkStatusWith(t, `{"apiVersion":"example.com/v1","kind":"Thing"}`, Result{Status: Current, Message: "every object of this kind is"},
		&Options{StatusSubresource: &yes, Rules: []Rule{without}})
}

func TestCompute_NilIsUnknown(t *testing.T) {
	want := Result{Status: Unknown, Message: "there is no object"}
	assert.Equal(t, want, Compute[*unstructured.Object](nil, nil))
	assert.Equal(t, want, Compute[*unstructured.Lazy](nil, nil))
}

func TestCompute_BoundsMessage(t *testing.T) {
	obj := &unstructured.Object{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "message": strings.Repeat("long ", 10_000)}}}}}
	result := Compute(obj, nil)
	assert.Equal(t, InProgress, result.Status)
	assert.LessOrEqual(t, len(result.Message), maxMessage)
	assert.Greater(t, len(result.Message), maxMessage/2)
	assert.Equal(t, "InProgress: condition Ready", result.String()[:27])
}

func TestCompute_LeavesObjectUnchanged(t *testing.T) {
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "status": map[string]any{"replicas": int64(1)}}}
	before := obj.DeepCopy()
	Compute(obj, nil)
	assert.Equal(t, before, obj)
}
