package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPlay_CurrentVersionsAsRecorded plays all scenarios with the versions selected by go.work.
func TestPlay_CurrentVersionsAsRecorded(t *testing.T) {
	observers, err := buildCurrent(t.Context(), t.TempDir())
	require.NoError(t, err)
	recorded := map[string]bool{}
	for _, r := range recordedResults(t) {
		recorded[r.line()] = true
	}
	all, err := playAll(t.Context(), observers, 0)
	t.Log(err)
	assert.Len(t, all, len(scenarios)*len(observers))
	for _, r := range all {
		if !recorded[r.line()] { // perhaps because of a busy machine: once more, alone
			r = playAgain(t, observers, r)
		}
		assert.True(t, recorded[r.line()], "%s: not in %s (make known-bugs ISSUE=%d plays it)", r, resultsFile, r.issue)
	}
}

func playAgain(t *testing.T, observers []observer, r result) result {
	t.Helper()
	t.Log("played again:", r)
	for _, o := range observers {
		if o.library == r.library && o.version == r.version {
			again, err := playAll(t.Context(), []observer{o}, r.issue)
			require.NoError(t, err)
			return again[0]
		}
	}
	return r
}

// TestTable_OfRecordedResults compares the page with the results of all versions.
func TestTable_OfRecordedResults(t *testing.T) {
	all := recordedResults(t)
	count := len(own)
	for _, l := range libraries {
		played := l.played(all)
		count += len(played)
		assert.Contains(t, played, l.versions[len(l.versions)-1], l.name)
	}
	assert.Len(t, all, len(scenarios)*count, "make known-bugs records all scenarios")
	page, err := os.ReadFile("../../docs/KNOWN_BUGS.md")
	require.NoError(t, err)
	_, current, _, err := splitPage(string(page))
	require.NoError(t, err)
	assert.Equal(t, table(all), current)
}

// recordedResults returns the results in results.txt.
func recordedResults(t *testing.T) (all []result) {
	t.Helper()
	text, err := os.ReadFile(resultsFile)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 4, line)
		issue, err := strconv.Atoi(fields[0])
		require.NoError(t, err)
		r := result{issue: issue, library: fields[1], version: fields[2]}
		if fields[3] == "yes" {
			r.shown = "recorded"
		}
		all = append(all, r)
	}
	return all
}

func TestVersionsCell_Ranges(t *testing.T) {
	l := &library{name: "l", versions: []string{"v1", "v2", "v3", "v4"}}
	for shown, cell := range map[string]string{"": "no", "v1": "v1", "v1 v2 v4": "v1 to v2, v4", "v1 v2 v3 v4": "v1 to v4", "v3 v4": "v3 to v4"} {
		var all []result
		for _, v := range l.versions {
			r := result{issue: 1, library: "l", version: v}
			if strings.Contains(shown, v) {
				r.shown = "x"
			}
			all = append(all, r)
		}
		assert.Equal(t, cell, versionsCell(all, 1, l))
	}
}

func TestResult_Lines(t *testing.T) {
	r := result{issue: 1, library: "l", version: "v1", shown: "the object " + registry + "shop/a returned"}
	assert.Equal(t, "1 l v1 yes", r.line())
	assert.Equal(t, "1 l v1 yes: the object shop/a returned", r.String())
	assert.Equal(t, "1 l v1 no", result{issue: 1, library: "l", version: "v1"}.String())
}
