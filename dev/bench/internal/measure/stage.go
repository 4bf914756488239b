//go:build unix

package measure

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// startPoint is the time and the CPU time at the start of a measurement.
type startPoint struct {
	at  time.Time
	cpu float64
}

func begin() startPoint { return startPoint{time.Now(), cpuTime()} }

// Stage adds the costs of a part of the task. KIND-wall and KIND-cpu are times. KIND-peak is the heap memory ever obtained from
// the system, including garbage and earlier memory. KIND-rss is the peak RSS of the process so far.
func (m *Meter) Stage(kind string, do func() error) error {
	start := begin()
	if err := do(); err != nil {
		return err
	}
	m.Figures[kind+"-wall"] = time.Since(start.at).Seconds()
	m.Figures[kind+"-cpu"] = cpuTime() - start.cpu
	m.Figures[kind+"-peak"] = float64(heapSys())
	m.Figures[kind+"-rss"] = float64(residentBytes("VmHWM"))
	return nil
}

// Held adds the figure "held": the growth of the live heap since before the task.
func (m *Meter) Held() {
	m.Figures["held"] = float64(liveHeap()) - float64(m.heapBefore)
}

// liveHeap returns the bytes of all live objects.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // objects held by pools during the first
	return heapAlloc()
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

// residentBytes returns a figure of this process in Linux' /proc/self/status: VmRSS is its resident memory, VmHWM the peak. It
// returns 0 on all systems but Linux. Unlike getrusage's peak, VmHWM excludes the memory of the parent process.
func residentBytes(field string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}
