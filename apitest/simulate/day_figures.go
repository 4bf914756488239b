package simulate

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// warmUpHours is the number of hours after which figures must not grow.
const warmUpHours = 3

// hourFigures has the figures of an hour of a day. Memory, goroutines and watches are those at its end.
type hourFigures struct {
	heap                uint64
	goroutines, watches int
	requests, lists     int
	perMinute           int           // median of the requests
	perSecond, atOnce   int           // maxima of the requests and the lists in a second
	busiest             time.Duration // the second with the most requests
}

// requestMeter counts the requests of all processes in an hour.
type requestMeter struct {
	mu                      sync.Mutex
	current                 hourFigures
	minutes                 [60]int
	second                  time.Duration // the current second, with its requests and lists
	inSecond, listsInSecond int
}

func (m *requestMeter) add(now time.Duration, isList bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if second := now.Truncate(time.Second); second != m.second {
		m.second = second
		m.inSecond = 0
		m.listsInSecond = 0
	}
	c := &m.current
	c.requests++
	m.minutes[int(now/time.Minute)%len(m.minutes)]++
	m.inSecond++
	if m.inSecond > c.perSecond {
		c.perSecond = m.inSecond
		c.busiest = m.second
	}
	if isList {
		c.lists++
		m.listsInSecond++
		c.atOnce = max(c.atOnce, m.listsInSecond)
	}
}

// next returns the figures of the hour and begins the next hour.
func (m *requestMeter) next() hourFigures {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.minutes[:])
	m.current.perMinute = m.minutes[len(m.minutes)/2]
	read := m.current
	m.current = hourFigures{}
	m.minutes = [60]int{}
	return read
}

// read adds the figures of an hour. All goroutines are blocked.
func (d *day) read() {
	read := d.requests.next()
	runtime.GC()
	runtime.GC() // objects of sync.Pool survive the first
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	read.heap = memory.HeapAlloc
	read.goroutines = countGoroutines(d.run.label)
	read.watches = int(d.run.watches.Load())
	d.figures = append(d.figures, read)
}

// assert fails the run if a figure has grown after the first hours, or if a limit is exceeded.
func (d *day) assert() {
	for i, read := range d.figures {
		if limit := d.options.MaxRequests; limit > 0 && read.perSecond > limit {
			d.run.fail("requests", fmt.Errorf("%d requests in the second at %s, more than MaxRequests %d", read.perSecond, read.busiest, limit))
		}
		if i < warmUpHours {
			continue
		}
		for _, figure := range figures() {
			if limit := figure.limit(d.figures[:warmUpHours]); figure.of(&read) > limit {
				d.run.fail("growth", fmt.Errorf("%s: %.0f after %d hours, more than %.0f", figure.name, figure.of(&read), i+1, limit))
			}
		}
	}
}

// figure is a figure that must not grow.
type figure struct {
	name          string
	of            func(*hourFigures) float64
	growth, slack float64
}

func figures() []figure {
	return []figure{
		{"bytes of the heap", func(r *hourFigures) float64 { return float64(r.heap) }, 1.2, 8 << 20},
		{"watches", func(r *hourFigures) float64 { return float64(r.watches) }, 1.1, 1},
		{"goroutines of Run", func(r *hourFigures) float64 { return float64(r.goroutines) }, 1.1, 8},
		{"requests a minute", func(r *hourFigures) float64 { return float64(r.perMinute) }, 1.5, 10},
	}
}

// limit returns growth times the maximum of the first hours plus slack.
func (f *figure) limit(first []hourFigures) float64 {
	most := 0.0
	for i := range first {
		most = max(most, f.of(&first[i]))
	}
	return most*f.growth + f.slack
}

// table returns the figures of each hour.
func (d *day) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%4s %9s %10s %7s %8s %6s %10s %12s %10s\n", "hour", "heap MiB", "goroutines", "watches", "requests", "lists", "a minute", "max a second", "max lists")
	for i, r := range d.figures {
		fmt.Fprintf(&text, "%4d %9.1f %10d %7d %8d %6d %10d %12d %10d\n",
			i+1, float64(r.heap)/(1<<20), r.goroutines, r.watches, r.requests, r.lists, r.perMinute, r.perSecond, r.atOnce)
	}
	return text.String()
}
