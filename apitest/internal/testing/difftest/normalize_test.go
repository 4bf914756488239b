package difftest

import (
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
