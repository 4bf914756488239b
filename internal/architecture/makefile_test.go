package architecture_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMakefile_SetsEachDefaultOnce finds a second default for a variable, which make ignores. A target has a default of its own.
func TestMakefile_SetsEachDefaultOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([A-Z_]+ |[a-z0-9-]+: [A-Z_]+ )\?=`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		assert.False(t, seen[match[1]], "two defaults of %s", match[1])
		seen[match[1]] = true
	}
	assert.True(t, seen["flaky: N "])
	assert.False(t, seen["N "])
}
