package readiness

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ruleOfBackup = `{"group":"example.com","kind":"Backup",
	"failed":[{"condition":"Synced","values":["False"],"reasons":["Denied","Invalid"]},{"field":"status.attempts","values":["3"]}],
	"inProgress":[{"field":"spec.paused","values":["true"]}],
	"current":[{"condition":"Synced"},{"field":"status.location"},{"field":"status.parts[name=a].ratio","values":["1","0.5"]}]}`

func TestRule_DecidesInOrder(t *testing.T) {
	var rule Rule
	require.NoError(t, json.Unmarshal([]byte(ruleOfBackup), &rule))
	synced := `{"type":"Synced","status":"True","observedGeneration":2}`
	for name, tc := range map[string]struct {
		spec, conditions, status string
		want                     Result
	}{
		"no condition": {``, ``, ``, Result{InProgress, "status.conditions[type=Synced].status", "condition Synced does not exist"}},
		"condition is False": {``, `{"type":"Synced","status":"False","reason":"Busy"}`, ``,
			Result{InProgress, "status.conditions[type=Synced].status", "condition Synced is False: Busy"}},
		"condition is behind": {``, `{"type":"Synced","status":"True","observedGeneration":1}`, ``,
			Result{InProgress, "status.conditions[type=Synced].observedGeneration", "condition Synced is of generation 1, the object is at 2"}},
		"failed by a reason": {`"paused":true`, `{"type":"Synced","status":"False","reason":"Denied"}`, ``,
			Result{Failed, "status.conditions[type=Synced].status", "condition Synced is False: Denied"}},
		"failed before, by a reason": {``, `{"type":"Synced","status":"False","reason":"Denied","observedGeneration":1}`, ``,
			Result{InProgress, "status.conditions[type=Synced].observedGeneration", "condition Synced is of generation 1, the object is at 2"}},
		"failed by a number": {``, synced, `,"attempts":3`, Result{Failed, "status.attempts", "status.attempts is 3"}},
		"paused":             {`"paused":true`, synced, `,"location":"x"`, Result{InProgress, "spec.paused", "spec.paused is true"}},
		"no location":        {`"paused":false`, synced, `,"location":null`, Result{InProgress, "status.location", "status.location does not exist"}},
		"no such element": {``, synced, `,"location":"x","parts":[{"name":"b"}]`,
			Result{InProgress, "status.parts[name=a].ratio", "status.parts[name=a].ratio does not exist"}},
		"other value": {``, synced, `,"location":"x","parts":[{"name":"a","ratio":0.25}]`,
			Result{InProgress, "status.parts[name=a].ratio", "status.parts[name=a].ratio is 0.25, not 1 or 0.5"}},
		"all hold": {``, synced, `,"location":"x","parts":[{"name":"a","ratio":0.5}]`,
			Result{Current, "status.parts[name=a].ratio", "status.parts[name=a].ratio is 0.5"}},
		"field of another type": {``, synced, `,"location":"x","parts":3`,
			Result{InProgress, "status.parts[name=a].ratio", ".status.parts: is int64, not map[string]any or []any"}},
		"before Stalled": {``, synced + `,{"type":"Stalled","status":"True"}`, `,"location":"x","parts":[{"name":"a","ratio":1}]`,
			Result{Current, "status.parts[name=a].ratio", "status.parts[name=a].ratio is 1"}},
		"another generation": {``, synced, `,"attempts":3,"observedGeneration":1`,
			Result{InProgress, "status.observedGeneration", "generation 2 is not observed yet: status is of generation 1"}},
		"string as observedGeneration": {``, synced, `,"attempts":3,"observedGeneration":"1"`,
			Result{Failed, "status.attempts", "status.attempts is 3; .status.observedGeneration: is string, not int64"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"generation":2},"spec":{` + tc.spec + `},"status":{"conditions":[` + tc.conditions + `]` + tc.status + `}}`
			checkStatus(t, obj, tc.want, Rule{Kind: "Backup"}, rule, Rule{Group: "example.com", Kind: "Backup"})
		})
	}
}

func TestRule_ReplacesBuiltinRule(t *testing.T) {
	const started = `{"apiVersion":"batch/v1","kind":"Job","status":{"startTime":"2026-01-02T03:04:05Z"}}`
	completed := Rule{Group: "batch", Kind: "Job", Failed: []Check{{Condition: "Failed"}}, Current: []Check{{Condition: "Complete"}}}
	checkStatus(t, started, Result{InProgress, "status.conditions[type=Complete].status", "condition Complete does not exist"}, completed)
	checkStatus(t, started, Result{Status: Current, Message: "every object of this kind is"}, Rule{Group: "batch", Kind: "Job"})
}

func TestRule_IgnoresObservedGeneration(t *testing.T) {
	const behind = `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"generation":2},"status":{"observedGeneration":1,"phase":"Done"}}`
	rule := Rule{Group: "example.com", Kind: "Backup", Current: []Check{{Field: "status.phase", Values: []string{"Done"}}}, IgnoreObservedGeneration: true}
	checkStatus(t, behind, Result{Current, "status.phase", "status.phase is Done"}, rule)
	checkStatus(t, behind, Result{Status: Current, Message: "every object of this kind is"}, Rule{Group: "example.com", Kind: "Backup"})
	checkStatus(t, `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}}`,
		Result{Terminating, "metadata.deletionTimestamp", "being deleted since 2026-01-02T03:04:05Z"}, rule)
}

func TestRule_QuotesConditionTypes(t *testing.T) {
	for name, field := range map[string]string{
		"example.com/Synced": "status.conditions[type=example.com/Synced].status", "a,b": `status.conditions[type="a,b"].status`,
	} {
		checkStatus(t, `{"kind":"Thing","status":{"conditions":[{"type":"Synced","status":"True"}]}}`,
			Result{InProgress, field, "condition " + name + " does not exist"}, Rule{Kind: "Thing", Current: []Check{{Condition: name}}})
	}
}

func TestRule_Validate(t *testing.T) {
	for want, rule := range map[string]Rule{
		"rule: it has no kind": {Group: "apps"},
		"rule for Thing: current[0]: it needs either a condition or a field":                     {Kind: "Thing", Current: []Check{{}}},
		"rule for Thing.example.com: failed[1]: it needs either a condition or a field":          {Group: "example.com", Kind: "Thing", Failed: []Check{{Condition: "A"}, {Condition: "A", Field: "a"}}},
		`rule for Thing: inProgress[0]: .a: [*] selects more than one value (GetAll reads them)`: {Kind: "Thing", InProgress: []Check{{Field: "a[*]"}}},
		"rule for Thing: current[0]: only a condition has reasons":                               {Kind: "Thing", Current: []Check{{Field: "a", Reasons: []string{"b"}}}},
	} {
		err := rule.Validate()
		require.ErrorContains(t, err, want)
		if rule.Kind != "" {
			checkStatus(t, `{"apiVersion":"`+rule.Group+`/v1","kind":"Thing"}`, Result{Status: Unknown, Message: err.Error()}, rule)
		}
	}
	assert.NoError(t, Rule{Kind: "Thing"}.Validate())
}
