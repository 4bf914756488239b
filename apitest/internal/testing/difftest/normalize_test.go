package difftest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSortMessage_LinesOfErrors(t *testing.T) {
	status := map[string]any{"message": "failed to convert: errors:\n  .status.b: field not declared in schema\n  .spec.a: field not declared in schema"}
	sortMessage(status)
	assert.Equal(t, "failed to convert: errors:\n  .spec.a: field not declared in schema\n  .status.b: field not declared in schema", status["message"])
	other := map[string]any{"message": "b\na"}
	sortMessage(other)
	assert.Equal(t, "b\na", other["message"])
}

func TestSortCauses_RepeatedCause(t *testing.T) {
	cause := func() any { return map[string]any{"reason": "FieldValueInvalid", "field": "spec.parallelism"} }
	status := func(causes ...any) map[string]any {
		return map[string]any{"message": "Job is invalid: " + fmt.Sprint(len(causes)), "details": map[string]any{"causes": causes}}
	}
	twice := status(cause(), cause())
	once := status(cause())
	sortCauses(twice)
	sortCauses(once)
	assert.Equal(t, once, twice)
}
