package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGoResults_TestsWithoutSubtests(t *testing.T) {
	results := goResults([]testEvent{
		{"run", "TestA", ""}, {"output", "TestA", "text\n"}, {"pass", "TestA", ""},
		{"run", "TestB", ""}, {"run", "TestB/one", ""}, {"run", "TestB/one/deep", ""}, {"output", "TestB/one/deep", "it broke\n"},
		{"fail", "TestB/one/deep", ""}, {"fail", "TestB/one", ""}, {"skip", "TestB/two", ""}, {"fail", "TestB", ""},
		{"run", "TestC", ""}, {"pass", "TestC/one", ""}, {"output", "TestC", "after its subtests\n"}, {"fail", "TestC", ""},
		{"pass", "", ""},
	})
	assert.Equal(t, []result{
		{name: "TestA", outcome: passed, message: "text"},
		{name: "TestB/one/deep", outcome: failed, message: "it broke"},
		{name: "TestB/two", outcome: skipped},
		{name: "TestC/one", outcome: passed},
		{name: "TestC", outcome: failed, message: "after its subtests"},
	}, results)
}

func TestSpecResults_StatesAndNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"ContainerHierarchyTexts": ["Client", "Get"], "LeafNodeType": "It", "LeafNodeText": "returns", "State": "passed", "NumAttempts": 2},
		{"ContainerHierarchyTexts": null, "LeafNodeType": "It", "LeafNodeText": "waits", "State": "pending"},
		{"ContainerHierarchyTexts": ["Client"], "LeafNodeType": "It", "LeafNodeText": "fails", "State": "panicked", "NumAttempts": 1,
			"Failure": {"Message": "no", "Location": {"FileName": "a_test.go", "LineNumber": 7}}},
		{"ContainerHierarchyTexts": null, "LeafNodeType": "It", "LeafNodeText": "is skipped", "State": "skipped"},
		{"LeafNodeType": "AfterSuite", "State": "failed", "Failure": {"Message": "left behind"}}
	], "SpecialSuiteFailureReasons": ["Detected pending specs"]}]`), 0o600))
	results, err := specResults(path, false)
	require.NoError(t, err)
	assert.Equal(t, []result{
		{name: "Client Get returns", outcome: passed, repeats: 1},
		{name: "waits", outcome: skipped},
		{name: "Client fails", outcome: failed, message: "panicked: no (a_test.go:7)"},
		{name: "is skipped", outcome: skipped},
		{name: "node AfterSuite", outcome: failed, message: "failed: left behind (:0)"},
		{name: "ginkgo suite", outcome: failed, message: "Detected pending specs"},
	}, results)
	focused, err := specResults(path, true)
	require.NoError(t, err)
	assert.Equal(t, slices.DeleteFunc(results, func(r result) bool { return r.name == "is skipped" }), focused)
	_, err = specResults(path+".none", false)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestExactly_QuotesEachPart(t *testing.T) {
	assert.Equal(t, `^TestA$/^a\(b\)$`, exactly("TestA/a(b)"))
}

func TestJudge_Exclusions(t *testing.T) {
	s := &suite{name: "one"}
	many := make([]result, 99)
	for i := range many {
		many[i] = result{name: "other", outcome: passed}
	}
	for name, c := range map[string]struct {
		results  []result
		excluded []exclusion
		passed   int
		failures []string
	}{
		"all pass": {results: []result{{name: "a", outcome: passed}, {name: "b", outcome: skipped}}, passed: 1},
		"unlisted failure": {
			results: []result{{name: "a", outcome: failed, message: "no"}}, failures: []string{"a: failed: no"},
		},
		"listed failure": {
			results: append(many, result{name: "a", outcome: failed}), excluded: []exclusion{{"one", "a", "reason"}, {"two", "b", "reason"}},
			passed: 99,
		},
		"listed test that passes": {
			results: append(many, result{name: "a", outcome: passed}), excluded: []exclusion{{"one", "a", "reason"}},
			passed: 100, failures: []string{"a: listed, but passes"},
		},
		"listed test that is skipped": {
			results: append(many, result{name: "a", outcome: skipped}), excluded: []exclusion{{"one", "a", "reason"}},
			passed: 99, failures: []string{"a: listed, but skipped upstream"},
		},
		"listed test that does not exist": {
			results: many, excluded: []exclusion{{"one", "a", "reason"}},
			passed: 99, failures: []string{"a: listed, but there is no such test"},
		},
		"one of several specs of a name": {
			results:  append(many, result{name: "a", outcome: failed}, result{name: "a", outcome: passed}),
			excluded: []exclusion{{"one", "a", "reason"}}, passed: 100,
		},
		"too many": {
			results: append(many[:20:20], result{name: "a", outcome: failed}), excluded: []exclusion{{"one", "a", "reason"}},
			passed: 20, failures: []string{"1 of 21 tests are excluded, which is more than 2 %"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := summarize(&report{suite: s, results: c.results}, c.excluded)
			assert.Equal(t, c.passed, v.passed)
			assert.Equal(t, c.failures, v.failures)
		})
	}
}

func TestParseExclusions_RejectsLines(t *testing.T) {
	all, err := parseList("list.txt", "# comment\n\none\tClient Delete waits\tbecause\n", checkVerb)
	require.NoError(t, err)
	assert.Equal(t, []exclusion{{"one", "Client Delete waits", "because"}}, all)
	for _, line := range []string{
		"one\ttest", "one\ttest\t", "one two three",
		"one\tClient Get returns\tbecause", "one\tTestList/empty\tbecause", "one\tshould be watching\tbecause",
		"one\tTestCreate\tbecause", "one\tupdates it\tbecause",
	} {
		_, err := parseList("list.txt", line, checkVerb)
		assert.Error(t, err, line)
	}
	_, err = parseList(fakesFile, "one\ttest\tbecause\n", checkClass)
	assert.ErrorContains(t, err, "begins with none of")
}

func TestSummarize_TestsOnFakes(t *testing.T) {
	r := &report{suite: &suite{name: "fakes/one", fakes: true}, results: []result{
		{name: "TestA/one", outcome: failed}, {name: "TestA/two", outcome: passed}, {name: "TestB", outcome: passed},
	}}
	v := summarize(r, []exclusion{{"fakes/one", "TestA", "test: reason"}})
	assert.Empty(t, v.failures)
	assert.Equal(t, []exclusion{{"fakes/one", "TestA/one", "test: reason"}}, v.excluded)
	assert.Equal(t, 2, v.passed)
	v = summarize(r, []exclusion{{"fakes/one", "TestA", "test: reason"}, {"fakes/one", "TestB", "test: reason"}})
	assert.Equal(t, []string{"TestB: listed, but does not fail"}, v.failures)
}

func TestParseVersions_RejectsLines(t *testing.T) {
	versions, err := parseVersions("# comment\nexample.com/a v1.0.0 h1:sum=\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]version{"example.com/a": {"v1.0.0", "h1:sum="}}, versions)
	_, err = parseVersions("example.com/a v1.0.0")
	assert.Error(t, err)
}
