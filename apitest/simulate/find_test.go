package simulate

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// waitForEnd is a program that does nothing.
func waitForEnd(ctx context.Context, _ *dynamic.Resource) error {
	<-ctx.Done()
	return ctx.Err()
}

// createOne creates a ConfigMap with a generated name.
func createOne(ctx context.Context, configMaps *dynamic.Resource) error {
	_, err := configMaps.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"generateName": "run-"}}}, nil)
	return err
}

func TestFind_Assertions(t *testing.T) {
	errPhase := errors.New("the phase is wrong")
	errFlag := errors.New("flag --class is missing")
	for name, tc := range map[string]struct {
		run   func(ctx context.Context, configMaps *dynamic.Resource) error
		check func(context.Context, *dynamic.Client) error
		want  string // in the error; "" for none
	}{
		"all hold": {run: waitForEnd, check: func(context.Context, *dynamic.Client) error { return nil }},
		"goroutine left": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			go time.Sleep(30 * time.Minute)
			return waitForEnd(ctx, configMaps)
		}, want: "goroutines of Run are left after its end:"},
		"second process writes": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			return errors.Join(createOne(ctx, configMaps), waitForEnd(ctx, configMaps))
		}, want: "a second run has changed ConfigMap default/run-"},
		"never quiet": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			for ctx.Err() == nil {
				if err := createOne(ctx, configMaps); err != nil {
					return err
				}
				time.Sleep(30 * time.Second)
			}
			return ctx.Err()
		}, want: "the controller does not stop writing: ConfigMap default/run-"},
		"Run does not return": {run: func(ctx context.Context, configMaps *dynamic.Resource) error {
			err := waitForEnd(ctx, configMaps)
			time.Sleep(time.Hour)
			return err
		}, want: "the function Run has not returned 5m0s after its ctx ended"},
		"Run fails at once": {run: func(context.Context, *dynamic.Resource) error { return errFlag }, want: "the function Run fails at every start: " + errFlag.Error()},
		"Run panics":        {run: func(context.Context, *dynamic.Resource) error { panic(errFlag) }, want: "the function Run fails at every start: panic: " + errFlag.Error()},
		"Run fails and recovers": {run: func() func(context.Context, *dynamic.Resource) error {
			calls := 0
			return func(ctx context.Context, configMaps *dynamic.Resource) error {
				if calls++; calls < 4 {
					return errFlag
				}
				return waitForEnd(ctx, configMaps)
			}
		}()},
		"Check fails": {run: waitForEnd, check: func(context.Context, *dynamic.Client) error { return errPhase }, want: errPhase.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			failure := Find(t, &Scenario{
				Run: func(ctx context.Context, p *Process) error {
					configMaps, err := p.Client.Resource(ctx, "configmaps")
					if err != nil {
						return err
					}
					return tc.run(ctx, configMaps.Namespace("default"))
				},
				Check: tc.check,
			}, &Options{Seeds: 1, NoEnumeration: true})
			if tc.want == "" {
				assert.Nil(t, failure)
				return
			}
			require.NotNil(t, failure)
			assert.ErrorContains(t, failure.Err, "without faults: "+tc.want)
			assert.NotContains(t, failure.Error(), "a second run with the same choices")
			assert.Equal(t, 1, failure.Runs)
			assert.Zero(t, failure.Seed)
			if name == "Check fails" {
				assert.ErrorIs(t, failure, errPhase)
			}
		})
	}
}

func TestFind_WriteAfterLostLease(t *testing.T) {
	for _, c := range broken.All() {
		if c.Name != "TwoLeaders" {
			continue
		}
		failure := Find(t, scenarioOf(t, c, false), &Options{Seeds: 1000, NoEnumeration: true})
		require.NotNil(t, failure)
		assert.Regexp(t, `controller apply configmaps default/orders-version #\d+ was sent after the lease .* had been lost to "another-candidate"`, failure.Err.Error())
		return
	}
	t.Fatal("no controller with a lease")
}

// TestFinder_ShrinkKeepsFailure shrinks the first failures of a broken controller, until no choice can be left out.
func TestFinder_ShrinkKeepsFailure(t *testing.T) {
	s := scenarioOf(t, broken.All()[3], false)
	f := &finder{t: t, scenario: s}
	f.want = f.run(&choices{}).state
	shorter := 0
	for seed := uint64(1); shorter < 3; seed++ {
		require.Less(t, seed, uint64(1000))
		drawn := &choices{seed: seed}
		res := f.run(drawn)
		if res.failure == nil {
			continue
		}
		best, shrunk := f.shrink(res, drawn)
		fails := func(fixed map[string]int) bool {
			again := f.run(&choices{seed: seed, fixed: fixed})
			return again.failure != nil && again.failure.class == res.failure.class
		}
		assert.True(t, fails(shrunk.fixed), "seed %d", seed)
		for key := range shrunk.fixed {
			rest := maps.Clone(shrunk.fixed)
			delete(rest, key)
			assert.False(t, fails(rest), "seed %d: %s is not needed", seed, key)
		}
		assert.LessOrEqual(t, len(best.made), len(res.made))
		if len(best.made) < len(res.made) {
			shorter++
		}
		t.Logf("seed %d: %d choices of %d", seed, len(best.made), len(res.made))
	}
}
