package cache_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// TestACacheIsRightAfterEveryStorm writes while everything that can break breaks, and then compares. The seed of a
// round is in its name: ANYKIND_CHAOS_SEED=n ANYKIND_CHAOS_ROUNDS=1 plays it again.
func TestACacheIsRightAfterEveryStorm(t *testing.T) {
	// No controller puts a Secret into a new namespace.
	secrets, crds := resource(t, cluster.Kubeconfig(t), "secrets"), resource(t, cluster.Kubeconfig(t), "crd")
	first := number(t, "ANYKIND_CHAOS_SEED", 1)
	for seed := first; seed < first+number(t, "ANYKIND_CHAOS_ROUNDS", 6); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			of := strengthOf(seed)
			if seed%6 == 3 { // the custom resource goes and comes back in mid-storm
				of.come, of.stay = of.come+of.stay, 0
				define(t, crds)
				notes := defined(t)
				round(t, notes.In(namespace(t)), of, seed, func() {
					remove(t, crds)
					define(t, crds)
				})
				remove(t, crds)
				return
			}
			round(t, secrets.In(namespace(t)), of, seed, nil)
		})
	}
}

// strengthOf makes every tenth storm one over thousands of objects, and another one over hundreds.
func strengthOf(seed uint64) *strength {
	switch seed % 10 {
	case 0:
		return &strength{stay: 1_000, come: 2_000, writers: 4, writes: 500, pause: 10 * time.Millisecond, reach: 1 << 18}
	case 5:
		return &strength{stay: 100, come: 200, writers: 4, writes: 100, pause: 15 * time.Millisecond, reach: 1 << 16}
	default:
		return &strength{stay: 5, come: 20, writers: 2, writes: 60, pause: 15 * time.Millisecond, reach: 1 << 12}
	}
}

func round(t *testing.T, direct *dynamic.Resource, of *strength, seed uint64, disaster func()) {
	t.Helper()
	s := siteOf(t, direct, seed)
	of.populate(t, direct)
	s.follow(t)
	s.storm(t, of, seed, disaster)
	s.compare(t)
	s.clear(t, of)
	s.leave(t)
}

// TestStormAfterStormTheHeapStaysAsItIs gives every object a long name, of which whatever keeps it gives itself away.
func TestStormAfterStormTheHeapStaysAsItIs(t *testing.T) {
	direct, seed := resource(t, cluster.Kubeconfig(t), "secrets").In(namespace(t)), number(t, "ANYKIND_CHAOS_SEED", 1)
	s := siteOf(t, direct, seed)
	s.follow(t)
	var heap []uint64
	for i := range 5 {
		of := &strength{
			prefix: fmt.Sprintf("%s-%d-", strings.Repeat("long", 55), i),
			stay:   200, come: 400, writers: 4, writes: 50, pause: 15 * time.Millisecond, reach: 1 << 16,
		}
		of.populate(t, direct)
		s.storm(t, of, 7*seed, nil)
		s.compare(t)
		s.clear(t, of)
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		heap = append(heap, now.HeapAlloc)
	}
	t.Logf("bytes on the heap after each storm: %v", heap)
	assert.Less(t, heap[4], heap[1]+1<<20, "on the heap after each storm: %v", heap)
	s.leave(t)
}
