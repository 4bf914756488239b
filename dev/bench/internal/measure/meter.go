//go:build unix

package measure

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Meter collects the figures of a task. It is not safe for concurrent use.
type Meter struct {
	*Settings
	Figures Figures

	seen    int
	unnamed int

	heapBefore uint64 // live bytes before the task
	events     startPoint
	delays     []float64
	unmarked   int            // changes without the time of writing, or without their number
	rounds     map[string]int // changes of each object seen by SeeSequence
}

// See counts an object with its name. The task must have decoded the name.
func (m *Meter) See(name string) {
	m.seen++
	if name == "" {
		m.unnamed++
	}
}

// Done reports whether all objects have been seen.
func (m *Meter) Done() bool { return m.seen >= m.Count }

func (m *Meter) check() error {
	switch {
	case m.unnamed > 0:
		return fmt.Errorf("%d objects had no name", m.unnamed)
	case m.unmarked > 0:
		return fmt.Errorf("%d changes lack the annotation of the writer", m.unmarked)
	case m.seen != m.Count:
		return fmt.Errorf("%d objects seen, want %d", m.seen, m.Count)
	default:
		return nil
	}
}

// heapSamples is the number of heap samples during a list.
const heapSamples = 20

// SampleHeap samples the live heap, after a garbage collection, at some of its calls. The figure "heap" is the maximum.
func (m *Meter) SampleHeap() {
	if m.seen%max(1, m.Count/heapSamples) != 0 {
		return
	}
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	m.Figures["heap"] = max(m.Figures["heap"], float64(now.HeapAlloc))
}

// Calls makes n sequential calls and adds three figures: KIND-wall, the median time, and KIND-alloc and KIND-allocs, the average
// bytes and allocations of a call.
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

// SeeAll counts all objects, for a task that does not decode them.
func (m *Meter) SeeAll() { m.seen = m.Count }
