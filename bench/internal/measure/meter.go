//go:build unix

package measure

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Meter is what a task reports to. One goroutine at a time.
type Meter struct {
	*Settings
	Figures Figures

	seen    int
	unnamed int

	heapBefore uint64 // what was alive before the task
	events     begun
	delays     []float64
	unmarked   int // changes that do not say when they were written
}

// See counts an object, of which the task read at least the name.
func (m *Meter) See(name string) {
	m.seen++
	if name == "" {
		m.unnamed++
	}
}

// Done tells whether all that there is has been seen.
func (m *Meter) Done() bool { return m.seen >= m.Count }

func (m *Meter) check() error {
	switch {
	case m.unnamed > 0:
		return fmt.Errorf("%d objects had no name", m.unnamed)
	case m.unmarked > 0:
		return fmt.Errorf("%d changes do not say when they were written", m.unmarked)
	case m.seen != m.Count:
		return fmt.Errorf("%d objects came, not %d", m.seen, m.Count)
	default:
		return nil
	}
}

// heapSamples is at how many places of a list the heap is looked at.
const heapSamples = 20

// SampleHeap looks now and then, while a list is gone through, at what the heap holds alive: all garbage is collected
// first. The figure "heap" is the most that was ever seen.
func (m *Meter) SampleHeap() {
	if m.seen%max(1, m.Count/heapSamples) != 0 {
		return
	}
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	m.Figures["heap"] = max(m.Figures["heap"], float64(now.HeapAlloc))
}

// Calls makes n calls of one kind, one after the other, and adds the figures KIND-wall, the median of a call, and
// KIND-alloc and KIND-allocs, the bytes and the pieces of memory that a call takes on the average.
func (m *Meter) Calls(kind string, n int, call func(i int) error) error {
	if n == 0 {
		return errors.New("no calls to make")
	}
	walls := make([]float64, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		begin := time.Now()
		if err := call(i); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		walls[i] = time.Since(begin).Seconds()
	}
	runtime.ReadMemStats(&after)
	slices.Sort(walls)
	m.Figures[kind+"-wall"] = walls[n/2]
	m.Figures[kind+"-alloc"] = float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
	m.Figures[kind+"-allocs"] = float64(after.Mallocs-before.Mallocs) / float64(n)
	return nil
}

// SeeAll counts all objects, where the task does not look at them.
func (m *Meter) SeeAll() { m.seen = m.Count }
