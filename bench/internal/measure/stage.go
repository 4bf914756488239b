//go:build unix

package measure

import (
	"runtime"
	"time"
)

// startPoint is the time and the CPU time at the start of a measurement.
type startPoint struct {
	at  time.Time
	cpu float64
}

func begin() startPoint { return startPoint{time.Now(), cpuTime()} }

// Stage adds the costs of a part of the task: KIND-wall, KIND-cpu, and KIND-peak, the heap memory ever obtained from the
// system, which includes garbage and earlier memory.
func (m *Meter) Stage(kind string, do func() error) error {
	start := begin()
	if err := do(); err != nil {
		return err
	}
	m.Figures[kind+"-wall"], m.Figures[kind+"-cpu"] = time.Since(start.at).Seconds(), cpuTime()-start.cpu
	m.Figures[kind+"-peak"] = float64(heapSys())
	return nil
}

// Held adds the figure "held": the growth of the live heap since before the task.
func (m *Meter) Held() {
	runtime.GC()
	m.Figures["held"] = float64(heapAlloc()) - float64(m.heapBefore)
}

func heapAlloc() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapAlloc
}

// heapSys returns the heap memory ever obtained from the system, including memory returned since.
func heapSys() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapSys
}
