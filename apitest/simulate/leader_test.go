package simulate

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
)

// twoReplicas returns the scenario of two candidates for a lease, of which the leader keeps the version of a Database.
func twoReplicas(t *testing.T, isCorrected bool) *Scenario {
	t.Helper()
	for _, c := range broken.All() {
		if c.Name == "TwoLeaders" {
			s := scenarioOf(t, c, isCorrected)
			s.Processes = 2
			return s
		}
	}
	t.Fatal("no controller with a lease")
	return nil
}

// TestTest_StoppedLeader stops one of two replicas before any of its requests for 12 or 40 seconds: longer than its deadline, and longer than
// its lease. No write may be sent after the other replica has taken the lease.
func TestTest_StoppedLeader(t *testing.T) {
	Test(t, twoReplicas(t, true), &Options{Seeds: *seeds, FirstSeed: *firstSeed, NoEnumeration: true})
}

func TestFind_StoppedLeaderWrites(t *testing.T) {
	failure := Find(t, twoReplicas(t, false), &Options{Seeds: 1000, NoEnumeration: true})
	require.NotNil(t, failure)
	t.Log(failure)
	assert.Regexp(t, `controller-\d apply configmaps default/orders-version #\d+ was sent after the lease .* had been lost to`, failure.Err.Error())
}

// stopsOfLeader returns 60 stops of the leader, which count themselves.
func stopsOfLeader(d *day, count map[time.Duration]int) (planned []operation) {
	for n := range 60 {
		key := "stop " + strconv.Itoa(n)
		at := time.Duration(n)*4*time.Minute + d.random(key, 3*time.Minute)
		stop := choose(d, key, stops[:]...)
		planned = append(planned, operation{at, "stops the leader for " + stop.String(), func() {
			if leader := d.run.leader(); leader != nil {
				leader.suspend(stop)
				count[stop]++
			}
		}})
	}
	return planned
}

// TestDay_StoppedLeader stops the leader of two replicas every four minutes, between its renewals and its writes.
func TestDay_StoppedLeader(t *testing.T) {
	for name, isCorrected := range map[string]bool{"corrected": true, "broken": false} {
		t.Run(name, func(t *testing.T) {
			count := map[time.Duration]int{}
			s := twoReplicas(t, isCorrected)
			s.Steps = append(s.Steps[:1:1], versionSteps(200)...)
			d := &day{
				options: DayOptions{Duration: 4 * time.Hour}, tokenFile: filepath.Join(t.TempDir(), "token"),
				plan: func(d *day) []operation { return stopsOfLeader(d, count) },
			}
			res := runDay(t, s, &choices{seed: *firstSeed, rarity: dayRarity}, d, nil, false)
			if !isCorrected {
				require.NotNil(t, res.failure)
				assert.Equal(t, "lease", res.failure.class, res.failure.err)
				return
			}
			if res.failure != nil {
				t.Fatal(res.failure.err, res.trace)
			}
			for _, stop := range stops {
				assert.Greater(t, count[stop], 10, stop)
			}
		})
	}
}

// versionSteps change the version of the Database count times.
func versionSteps(count int) (steps []Step) {
	for _, c := range broken.All() {
		if c.Name == "TwoLeaders" {
			for len(steps) < count {
				for _, step := range c.Steps[1:] {
					steps = append(steps, Step(step))
				}
			}
		}
	}
	return steps
}
