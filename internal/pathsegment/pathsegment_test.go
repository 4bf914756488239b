package pathsegment_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/pathsegment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidate_Segments(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "web-0": nil, "...": nil, "system:node": nil, "sha256:ABC@def": nil, "ñ": nil,
		".":   {"may not be '.'"},
		"..":  {"may not be '..'"},
		"a/b": {"may not contain '/'"},
		"a%b": {"may not contain '%'"},
		"%/":  {"may not contain '/'", "may not contain '%'"},
	} {
		assert.Equal(t, want, pathsegment.Validate(text), text)
	}
}
