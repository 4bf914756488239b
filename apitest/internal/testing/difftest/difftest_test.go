package difftest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/difftest"
)

// The whole comparison of `make apitest-diff` has wholeRun operations; CI plays a part of it.
const (
	wholeRun   = 100_000
	partialRun = 3_000
)

// TestDifferential_ApitestAgainstSandbox is the differential test. What may differ for good is in permitted.txt.
func TestDifferential_ApitestAgainstSandbox(t *testing.T) {
	sandbox := difftest.Sandbox(t)
	double := difftest.Double(t, nil)
	c := difftest.Config{
		Seed: compare.Number(t, "ANYKIND_APITEST_SEED", 1), Operations: compare.Number(t, "ANYKIND_APITEST_OPERATIONS", partialRun), Permitted: "permitted.txt",
	}
	result := difftest.Run(t, sandbox, double, c)
	t.Log(result.Summary())
	if len(result.Unexplained) > 0 {
		t.Log(result.Describe(compare.Number(t, "ANYKIND_APITEST_SHOW", 30)))
		t.Error(result.Shrink(t, sandbox, double, c, compare.Number(t, "ANYKIND_APITEST_REPLAYS", 100)))
	}
	custom, differentCustom := result.Of("custom")
	builtin, differentBuiltin := result.Of("builtin")
	assert.LessOrEqual(t, differentCustom*100, custom, "at most 1 %% of operations on custom resources may differ")
	assert.LessOrEqual(t, differentBuiltin*20, builtin, "at most 5 %% of operations on built-in kinds may differ")
	assert.GreaterOrEqual(t, result.Corpus*2, result.Operations, "at least half on custom resources of the corpus")
	if c.Operations >= wholeRun {
		_, combination, count := result.Fewest()
		assert.GreaterOrEqual(t, count, 200, "operations of each combination; the fewest are of %s", combination)
		assert.Empty(t, result.Unused(), "permitted.txt has lines that match no difference any more")
	}
	if path := os.Getenv("ANYKIND_APITEST_DOCUMENT"); path != "" && !t.Failed() {
		compare.WriteTable(t, path, tableInDocument, result.Table())
	}
}

// TestPermitted_InDocument requires the reasons of permitted.txt in the table of the documentation.
func TestPermitted_InDocument(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/APITEST.md")
	require.NoError(t, err)
	lines, err := os.ReadFile("permitted.txt")
	require.NoError(t, err)
	table := tableInDocument.FindString(string(text))
	require.NotEmpty(t, table)
	rows := 0
	for line := range strings.Lines(string(lines)) {
		if parts := strings.Split(strings.TrimSpace(line), " :: "); len(parts) == 3 && line[0] != '#' {
			assert.Contains(t, table, "| "+parts[2]+" |", "make apitest-diff writes it")
			rows++
		}
	}
	assert.Equal(t, rows, strings.Count(table[strings.Index(table, "what may differ"):], "\n| "), "of reasons")
}

var tableInDocument = regexp.MustCompile(`(?s)(<!-- table of the differential test: begin -->\n).*(<!-- table of the differential test: end -->)`)
