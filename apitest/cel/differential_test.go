package cel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/internal/testing/difftest"
)

// TestDifferential_RulesAgainstSandbox plays operations on custom resources with rules.
func TestDifferential_RulesAgainstSandbox(t *testing.T) {
	sandbox := difftest.Sandbox(t)
	double := difftest.Double(t, &apitest.Options{Rules: cel.Rules{}})
	c := difftest.Config{Seed: 1, Operations: 600, WithRules: true, Permitted: "../internal/testing/difftest/permitted.txt"}
	result := difftest.Run(t, sandbox, double, c)
	t.Log(result.Summary())
	if len(result.Unexplained) > 0 {
		t.Log(result.Describe(30))
		t.Error(result.Shrink(t, sandbox, double, c, 100))
	}
	custom, different := result.Of("custom")
	assert.GreaterOrEqual(t, custom, c.Operations)
	assert.LessOrEqual(t, different*100, custom, "at most 1 %% of operations may differ")
	assert.GreaterOrEqual(t, result.Corpus*2, result.Operations, "at least half on custom resources of the corpus")
}
