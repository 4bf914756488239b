package simulate

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/race"
	"github.com/anykind/anykind/unstructured"
)

var (
	days    = flag.Int("days", 1, "simulated days")
	tenantN = flag.Int("tenants", testedTenants(), "Tenants of a simulated day")
)

// testedTenants returns 1000, or 50 with the race detector.
func testedTenants() int {
	if race.Enabled {
		return 50
	}
	return 1000
}

func TestDay_Tenants(t *testing.T) {
	// A worker sends a request a millisecond at most, and there are four.
	Day(t, tenantScenario(*tenantN, max(*tenantN/4, 30)), &DayOptions{Seeds: *days, FirstSeed: *firstSeed, MaxRequests: 4000})
}

func TestDay_FindsGrowth(t *testing.T) {
	var kept [][]byte // outlives a process, like a registry of metrics
	lives := 0
	everyMinute := func(ctx context.Context, do func(minute int) error) error {
		for minute := 0; ctx.Err() == nil; minute++ {
			if err := do(minute); err != nil {
				return err
			}
			time.Sleep(time.Minute)
		}
		return ctx.Err()
	}
	for name, tc := range map[string]struct {
		run   func(ctx context.Context, configMaps *dynamic.Resource) error
		kills bool
		want  string // in the error; "" for none
	}{
		"flat": {run: waitForEnd},
		"heap": {run: func(ctx context.Context, _ *dynamic.Resource) error {
			return everyMinute(ctx, func(int) error {
				kept = append(kept, make([]byte, 200<<10))
				return nil
			})
		}, want: "bytes of the heap: "},
		"goroutines": {run: func(ctx context.Context, _ *dynamic.Resource) error {
			return everyMinute(ctx, func(int) error {
				go func() { <-ctx.Done() }()
				return nil
			})
		}, want: "goroutines of Run: "},
		"watches": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			return everyMinute(ctx, func(minute int) error {
				if minute%20 == 0 {
					go func() {
						for range configMaps.Follow(ctx, nil) { //nolint:errcheck // runs until ctx ends
						}
					}()
				}
				return nil
			})
		}, want: "watches: "},
		"requests": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			return everyMinute(ctx, func(minute int) error {
				for range minute / 16 {
					_, _ = configMaps.Get(ctx, "kept", nil) // an error would end the process, and its growth
				}
				return nil
			})
		}, want: "requests a minute: "},
		"burst": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			for range 30 {
				if _, err := configMaps.Get(ctx, "kept", nil); err != nil {
					return err
				}
			}
			return waitForEnd(ctx, configMaps)
		}, want: "requests in the second at "},
		"state": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			if lives++; lives == 4 { // after the two of the run without operations
				if err := createOne(ctx, configMaps); err != nil {
					return err
				}
			}
			return waitForEnd(ctx, configMaps)
		}, kills: true, want: "the final state differs from a run without faults:\n  ConfigMap default/run-* should not be there"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := DayOptions{Duration: 8 * time.Hour, MaxRequests: 29}
			s := &Scenario{Server: apitest.Options{Objects: keptConfigMap()}, Run: func(ctx context.Context, p *Process) error {
				configMaps, err := configMapsOf(ctx, p.Client)
				if err != nil {
					return err
				}
				return tc.run(ctx, configMaps)
			}}
			plan := func(d *day) (planned []operation) {
				if tc.kills {
					planned = append(planned, operation{time.Hour, "kills the process", func() { d.run.currentProcess(0).crash() }})
				}
				return planned
			}
			failure := findInDays(t, s, &opts, plan, func(_ uint64, d *day) { t.Log("\n" + d.table()) })
			if tc.want == "" {
				require.Nil(t, failure)
				return
			}
			require.NotNil(t, failure)
			assert.ErrorContains(t, failure.Err, tc.want)
			assert.Equal(t, uint64(1), failure.Seed)
			assert.Equal(t, tc.kills, strings.Contains(failure.Trace, "kills the process"))
		})
	}
}

func keptConfigMap() []*unstructured.Object {
	return []*unstructured.Object{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kept", "namespace": "default"},
	}}}
}
