package simulate

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/published"
	"github.com/anykind/anykind/internal/testing/race"
)

var writeDocs = flag.Bool("write", false, "write the table of published defects in docs/SIMULATION.md")

const (
	// maxPublishedSeeds is the number of seeds within which each published defect is found.
	maxPublishedSeeds = 100
	simulationDoc     = "../../docs/SIMULATION.md"
)

// publishedScenario returns the scenario of an operator with a published defect, or of its corrected version.
func publishedScenario(t *testing.T, d published.Defect, isCorrected bool) *Scenario {
	t.Helper()
	server, err := d.Server(isCorrected)
	require.NoError(t, err)
	s := &Scenario{
		Server: server, Check: d.Check,
		Run: func(ctx context.Context, p *Process) error { return d.Run(ctx, p.Client, isCorrected) },
	}
	for _, step := range d.Steps {
		s.Steps = append(s.Steps, Step(step))
	}
	return s
}

// TestFind_PublishedDefects finds each defect, and compares the table in docs/SIMULATION.md. The flag -write accepts a difference.
func TestFind_PublishedDefects(t *testing.T) {
	race.Skip(t)
	table := "| operator and issue | class | owned objects | defect | violated | seeds | choices | steps |\n|---|---|---|---|---|---|---|---|\n"
	for _, d := range published.All() {
		t.Run(d.Issue, func(t *testing.T) {
			failure := Find(t, publishedScenario(t, d, false), &Options{Seeds: maxPublishedSeeds, NoEnumeration: true})
			require.NotNil(t, failure)
			t.Log(failure)
			require.NotContains(t, failure.Error(), "without faults: ")
			assert.ErrorContains(t, failure, d.Violation)
			table += fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %d | %d |\n",
				d.Link(), d.Class, d.Owned, d.Description, d.Invariant, failure.Seed, len(failure.Choices), countSteps(failure.Trace))
		})
	}
	old, err := os.ReadFile(simulationDoc)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(old), "<!-- published -->\n")
	require.True(t, found)
	recorded, after, found := strings.Cut(rest, "<!-- end -->")
	require.True(t, found)
	if *writeDocs {
		text := before + "<!-- published -->\n" + table + "<!-- end -->" + after
		require.NoError(t, os.WriteFile(simulationDoc, []byte(text), 0o644))
		return
	}
	assert.Equal(t, recorded, table, "make published accepts the difference")
}

// countSteps returns the number of steps, events and requests of a trace, from the first step of a user to the end of the faults.
func countSteps(trace string) (n int) {
	for line := range strings.Lines(trace) {
		if strings.Contains(line, "no faults from now on") {
			break
		}
		switch strings.Fields(line)[1] {
		case "user":
			n++
		case "controller", "server":
			if n > 0 {
				n++
			}
		}
	}
	return n
}

func TestFind_CorrectedPublishedDefects(t *testing.T) {
	count := max(*seeds, maxPublishedSeeds)
	if race.Enabled {
		count = *seeds
	}
	for _, d := range published.All() {
		t.Run(d.Issue, func(t *testing.T) {
			t.Parallel()
			Test(t, publishedScenario(t, d, true), &Options{Seeds: count, FirstSeed: *firstSeed, NoEnumeration: true})
			// A pod ends that the controller's cache has never had.
			Test(t, publishedScenario(t, d, true), &Options{Seeds: 1, FirstSeed: 1343, NoEnumeration: true})
		})
	}
}
