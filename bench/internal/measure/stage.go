//go:build unix

package measure

import (
	"runtime"
	"time"
)

// begun is what had been used up when something began.
type begun struct {
	at  time.Time
	cpu float64
}

func begin() begun { return begun{time.Now(), cpuTime()} }

// Stage adds what a part of the task costs: KIND-wall, KIND-cpu, and KIND-peak, the most that the heap
// ever had from the system, garbage, and what was there before, and all.
func (m *Meter) Stage(kind string, do func() error) error {
	start := begin()
	if err := do(); err != nil {
		return err
	}
	m.Figures[kind+"-wall"], m.Figures[kind+"-cpu"] = time.Since(start.at).Seconds(), cpuTime()-start.cpu
	m.Figures[kind+"-peak"] = float64(heapSys())
	return nil
}

// Held adds the figure "held": what is alive on the heap now and was not before the task.
func (m *Meter) Held() {
	runtime.GC()
	m.Figures["held"] = float64(heapAlloc()) - float64(m.heapBefore)
}

func heapAlloc() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapAlloc
}

// heapSys is what the heap has ever had from the system: what it gives back still counts.
func heapSys() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapSys
}
