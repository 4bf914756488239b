//go:build unix

package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCompare_PrintsLinesAndPage makes every run once, tiny; what the figures are is not for a test.
func TestCompare_PrintsLinesAndPage(t *testing.T) {
	corpus.Definitions(t, 1)                // skips without the corpus, whose kinds are in the mixed set
	t.Setenv("GORACE", "atexit_sleep_ms=0") // each program would sleep for a second before it ends
	var lines, progress bytes.Buffer
	readme := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(readme, []byte("<!-- bench binary-size -->99.9 of client-go's size"), 0o600))
	docs := filepath.Join(filepath.Dir(readme), "docs")
	args := []string{
		"-kubeconfig", cluster.Kubeconfig(t), "-pods", "20,50", "-growth", "10,20,50", "-events", "50", "-changes", "50", "-calls", "3", "-definitions", "5", "-kinds", "2", "-rounds", "1", "-docs", docs, "-profileFor", "1ms",
	}
	opts, err := parse(append(args, "-bench", "packages"))
	require.NoError(t, err)
	opts.lines = &lines
	opts.progress = &progress
	require.NoError(t, compare(t.Context(), opts), "%s", &progress)
	assert.Contains(t, progress.String(), "rounds of program/1 ")
	partial, err := os.ReadFile(filepath.Join(docs, "BENCHMARKS.md"))
	require.NoError(t, err)
	assert.Contains(t, string(partial), "| binary-size |")
	assert.NotContains(t, string(partial), "| cold-cli |")
	assert.Contains(t, string(partial), "Not measured yet: first/1, list/20, ")
	lines.Reset()
	progress.Reset()
	opts, err = parse(append(args, "-resume"))
	require.NoError(t, err)
	opts.lines = &lines
	opts.progress = &progress
	require.NoError(t, compare(t.Context(), opts), "%s", &progress)
	assert.NotContains(t, progress.String(), "rounds of program/1 ", "measured again")

	page, err := os.ReadFile(filepath.Join(docs, "BENCHMARKS.md"))
	require.NoError(t, err)
	drawn, err := os.ReadFile(filepath.Join(docs, plotName))
	require.NoError(t, err)
	printed := strings.Split(strings.TrimSpace(lines.String()), "\n")
	want := opts.chosen()
	require.Len(t, printed, len(want))
	for i, line := range printed {
		name, ratio := parseLine(t, line)
		assert.Equal(t, want[i].name, name)
		isSmall := strings.HasPrefix(name, "cache-floor-heap") // 20 objects may take less than the process frees meanwhile
		assert.False(t, math.IsNaN(ratio) || math.IsInf(ratio, 0) || ratio <= 0 && !isSmall, line)
		assert.Contains(t, string(page), "| "+name+" |")
		assert.Contains(t, string(drawn), ">"+name+"<")
	}
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	assert.Regexp(t, `^<!-- bench binary-size -->0\.\d\d of client-go's size$`, string(text))
	assert.NotContains(t, string(page), "<no value>")
	assert.NotContains(t, string(page), "Not measured yet")
	assert.NotContains(t, string(page), "an earlier state", "of a resumed run")
	for _, name := range []string{heapPlotName, syncPlotName, changePlotName} {
		assert.Contains(t, string(page), "("+name+")")
		assert.FileExists(t, filepath.Join(docs, name))
	}
	for _, s := range growthSeries {
		assert.Contains(t, string(page), "\n| "+s.label+" | ")
	}
	for _, form := range managerForms {
		assert.Contains(t, string(page), "\n| "+form.task+" | 50 | ")
	}
}

// parseLine reads "bench NAME ratio=R ours=… theirs=…".
func parseLine(t *testing.T, line string) (name string, ratio float64) {
	t.Helper()
	words := strings.Fields(line)
	require.Len(t, words, 5, line)
	require.Equal(t, "bench", words[0], line)
	require.True(t, strings.HasPrefix(words[3], "ours=") && strings.HasPrefix(words[4], "theirs="), line)
	text, found := strings.CutPrefix(words[2], "ratio=")
	require.True(t, found, line)
	ratio, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err, line)
	return words[1], ratio
}

func TestOptions_ChosenByPrefix(t *testing.T) {
	names := func(args ...string) []string {
		opts, err := parse(append(args, "-kubeconfig", "unused"))
		require.NoError(t, err)
		var all []string
		for _, c := range opts.chosen() {
			all = append(all, c.name)
		}
		return all
	}
	assert.Equal(t, []string{"list-floor/50", "list-floor-whole/50", "packages"}, names("-pods", "50", "-bench", "list-floor,pack"))
	everything := names("-pods", "", "-bench", "")
	assert.Contains(t, everything, "list-objects-cpu/50000")
	assert.Contains(t, everything, "list-iterate-heap-growth")
	unique := map[string]bool{}
	for _, name := range everything {
		assert.False(t, unique[name], "%s is there twice", name)
		unique[name] = true
	}
}

func TestParse_RejectsInvalidFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`-pods "5,x": "x" is not a length`: {"-kubeconfig", "c", "-pods", "5,x"},
		"(set KUBECONFIG":                  {"-kubeconfig", ""},
	} {
		_, err := parse(args)
		require.ErrorContains(t, err, want)
	}
	opts, err := parse([]string{"-kubeconfig", "c", "-bench", "lits"})
	require.NoError(t, err)
	require.ErrorContains(t, compare(t.Context(), opts), "no comparison has the prefix lits")
}

func TestServer_WithoutPodsOfOthers(t *testing.T) {
	s := &server{podNamespaces: sets.New("bench-100000", "bench-5000", "bench-50000")}
	assert.Equal(t, "metadata.namespace!=bench-100000,metadata.namespace!=bench-50000", s.withoutPodsOfOthers("bench-5000"))
	assert.Empty(t, (&server{podNamespaces: sets.New("bench-5000")}).withoutPodsOfOthers("bench-5000"))
}
