package simulate

import (
	"context"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/internal/testing/race"
)

var (
	seeds     = flag.Int("seeds", testedSeeds(), "random runs of each corrected controller")
	firstSeed = flag.Uint64("first", 1, "the first seed of these")
)

// testedSeeds returns 20, or 4 with the race detector, which also leaves the systematic runs to make long.
func testedSeeds() int {
	if race.Enabled {
		return 4
	}
	return 20
}

// scenarioOf returns the scenario of a controller with a defect, or of its corrected version.
func scenarioOf(t *testing.T, c broken.Controller, isCorrected bool) *Scenario {
	t.Helper()
	objects, err := broken.Objects()
	require.NoError(t, err)
	s := &Scenario{
		Server: apitest.Options{Objects: objects},
		Run:    func(ctx context.Context, p *Process) error { return c.Run(ctx, p.Client, isCorrected) },
	}
	if c.GarbageCollection {
		s.Server.Controllers = apitest.GarbageCollection
	}
	for _, step := range c.Steps {
		s.Steps = append(s.Steps, Step(step))
	}
	return s
}

func TestFind_BrokenControllers(t *testing.T) {
	for _, c := range broken.All() {
		t.Run(c.Name, func(t *testing.T) {
			failure := Find(t, scenarioOf(t, c, false), &Options{Seeds: 1000, NoEnumeration: true})
			require.NotNil(t, failure)
			t.Log(failure)
			assert.NotZero(t, failure.Seed)
			assert.NotContains(t, failure.Error(), "without faults: ")
			assert.LessOrEqual(t, len(failure.Choices), 4)
		})
	}
}

func TestFind_CorrectedControllers(t *testing.T) {
	for _, c := range broken.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			Test(t, scenarioOf(t, c, true), &Options{Seeds: *seeds, FirstSeed: *firstSeed, NoEnumeration: race.Enabled || *firstSeed != 1})
		})
	}
}
