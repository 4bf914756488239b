//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// resultsWith returns results that have these figures and are not kept.
func resultsWith(t *testing.T, figures map[cost]float64) *results {
	t.Helper()
	kept, err := openResults("")
	require.NoError(t, err)
	byGroup := map[string]map[cost]float64{}
	for c, value := range figures {
		name := groupRuns([]run{c.run})[0].name
		if byGroup[name] == nil {
			byGroup[name] = map[cost]float64{}
		}
		byGroup[name][c] = value
	}
	for name, of := range byGroup {
		require.NoError(t, kept.add(group{name: name}, versions{}, of))
	}
	return kept
}

func TestGroupRuns_ByStageAndCount(t *testing.T) {
	list := run{"ours", "list", 50}
	whole := run{"ours", "whole", 50}
	event := run{"ours", "cache-event", 50}
	short := run{"theirs", "list", 20}
	assert.Equal(t, []group{
		{"list/20", []run{short}}, {"list/50", []run{list, whole}}, {"cache-event/50", []run{event}},
	}, groupRuns([]run{event, list, short, list, whole}))
}

func TestResults_KeptInFile(t *testing.T) {
	docs := t.TempDir()
	kept, err := openResults(docs)
	require.NoError(t, err)
	ours := run{"ours", "list", 50}
	theirs := run{"theirs", "list", 50}
	lists := group{"list/50", []run{ours, theirs}}
	v := versions{Go: "go1"}
	require.NoError(t, kept.add(lists, v, map[cost]float64{{ours, "cpu"}: 1, {theirs, "cpu"}: 2}))
	kept.Profiles = []profile{{Task: "list"}, {Task: "watch"}}

	require.NoError(t, kept.add(group{"watch/50", []run{{"ours", "watch", 50}}}, v, nil))
	assert.Equal(t, []profile{{Task: "list"}}, kept.Profiles, "a group that is measured again has no profile")
	again, err := openResults(docs)
	require.NoError(t, err)
	assert.Equal(t, kept, again)
	assert.InDelta(t, 2, again.of(cost{theirs, "cpu"}), 0)
	assert.Zero(t, again.of(cost{theirs, "wall"}))
	assert.True(t, again.isMeasured(cost{theirs, "cpu"}))
	assert.False(t, again.isMeasured(cost{theirs, "wall"}))
	assert.True(t, again.has(lists, v))
	assert.False(t, again.has(lists, versions{Go: "go2"}), "measured with another version")
	assert.Empty(t, again.older())
	again.library = "changed"
	assert.Equal(t, []string{"list/50", "watch/50"}, again.older())
	lists.runs = append(lists.runs, run{"ours", "lazy", 50})
	assert.False(t, again.has(lists, v), "a run is missing")
}

func TestOptions_ChosenGroupsAreWholeForPage(t *testing.T) {
	names := func(args ...string) (all []string) {
		opts, err := parse(append(args, "-kubeconfig", "unused", "-pods", "50", "-growth", "10,50"))
		require.NoError(t, err)
		for _, g := range opts.chosenGroups() {
			all = append(all, g.name)
		}
		return all
	}
	assert.Equal(t, []string{"cache/50"}, names("-bench", "cache-heap", "-docs", "d"))
	assert.Equal(t, []string{"cache/10", "cache/50"}, names("-bench", "growth", "-docs", "d"))
	assert.Empty(t, names("-bench", "growth"))

	opts, err := parse([]string{"-kubeconfig", "unused", "-pods", "50", "-bench", "cache-heap-lazy", "-docs", "d"})
	require.NoError(t, err)
	assert.Greater(t, len(opts.chosenGroups()[0].runs), 2, "not only those of the comparison")
}
