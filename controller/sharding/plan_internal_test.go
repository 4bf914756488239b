package sharding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/shard"
)

// complete returns the segments after all handovers.
func complete(segments []segment) []segment {
	completed, _ := assignment{segments: segments}.change(func(s *segment) {
		if s.next != "" {
			s.owner = s.next
		}
		s.next = ""
	})
	return completed.segments
}

// loadsOf returns the load and the number of ranges of each member, and checks that the segments cover all hashes and are merged.
func loadsOf(t *testing.T, segments []segment, w weights) (loads map[string]float64, ranges map[string]int) {
	t.Helper()
	loads = map[string]float64{}
	ranges = map[string]int{}
	require.Zero(t, segments[0].First)
	require.Equal(t, uint64(math.MaxUint64), segments[len(segments)-1].Last)
	for i, s := range segments {
		require.LessOrEqual(t, s.First, s.Last)
		if i > 0 {
			require.Equal(t, segments[i-1].Last+1, s.First)
			require.NotEqual(t, segments[i-1].owner, s.owner, "not merged")
		}
		loads[s.owner] += w.of(s.Range)
		ranges[s.owner]++
	}
	return loads, ranges
}

// moved returns the weight that changes its owner.
func moved(before, after []segment, w weights) (sum float64) {
	for _, a := range before {
		for _, b := range after {
			r := shard.Range{First: max(a.First, b.First), Last: min(a.Last, b.Last)}
			if r.First <= r.Last && a.owner != b.owner {
				sum += w.of(r)
			}
		}
	}
	return sum
}

// TestPlan_JoinsAndLeaves draws sequences of joins and leaves.
func TestPlan_JoinsAndLeaves(t *testing.T) {
	var names []string
	for i := range 4000 {
		names = append(names, fmt.Sprint("tenant-", i))
	}
	for _, maxMembers := range []int{3, 8, 40} {
		for name, w := range map[string]weights{"uid": {}, "namespace": newWeights(names)} {
			t.Run(fmt.Sprint(maxMembers, " by ", name), func(t *testing.T) {
				most := 0
				worst := 0.0
				for seed := range uint64(max(1, 16/maxMembers)) {
					random := rand.New(rand.NewPCG(seed, uint64(maxMembers)))
					live := []string{"m0"}
					segments := plan(newAssignment().segments, live, w)
					for step := range 80 {
						joins := len(live) == 1 || len(live) < maxMembers && random.IntN(2) == 0
						if step < maxMembers/2 {
							joins = true
						}
						share := 1 / float64(len(live))
						if joins {
							live = append(live, fmt.Sprint("m", step+1))
							share = 1 / float64(len(live))
						} else {
							i := random.IntN(len(live))
							live = slices.Delete(slices.Clone(live), i, i+1)
						}
						planned := plan(segments, live, w)
						require.Equal(t, planned, plan(segments, live, w), "deterministic")
						next := complete(planned)
						loads, ranges := loadsOf(t, next, w)
						require.LessOrEqual(t, moved(segments, next, w), 1.3*share+w.unit(), "step %d with %d members", step, len(live))
						require.Len(t, loads, len(live))
						for _, member := range live {
							difference := math.Abs(loads[member]*float64(len(live)) - 1)
							worst = max(worst, difference)
							most = max(most, ranges[member])
							require.LessOrEqual(t, difference, 0.2, "step %d: %s of %d", step, member, len(live))
							require.LessOrEqual(t, ranges[member], maxRanges)
						}
						require.Equal(t, next, plan(next, live, w), "a plan is stable")
						segments = next
					}
				}
				t.Logf("at most %d ranges a member, and %.0f%% from its quota", most, 100*worst)
			})
		}
	}
}

// TestPlan_LimitsRanges plans segments that alternate between members, more of them than a member may have.
func TestPlan_LimitsRanges(t *testing.T) {
	const count = 512
	for members := 2; members <= 7; members++ {
		var live []string
		for i := range members {
			live = append(live, fmt.Sprint("m", i))
		}
		var segments []segment
		for i := range uint64(count) {
			const size = math.MaxUint64/count + 1
			segments = append(segments, segment{Range: shard.Range{First: i * size, Last: i*size + size - 1}, owner: live[i%uint64(members)]})
		}
		_, before := loadsOf(t, segments, weights{})
		require.Greater(t, before["m0"], maxRanges)
		next := complete(plan(segments, live, weights{}))
		loads, ranges := loadsOf(t, next, weights{})
		for _, member := range live {
			require.LessOrEqual(t, ranges[member], maxRanges, "%s of %d", member, members)
			require.InDelta(t, 1/float64(members), loads[member], 0.25/float64(members), "%s of %d", member, members)
		}
		require.Equal(t, next, plan(next, live, weights{}), "a plan is stable")
	}
}
