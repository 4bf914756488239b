//go:build unix

package measure

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

const (
	// Changed is the annotation with the write time of a change, in nanoseconds since 1970.
	Changed = "changed"
	// ReadyLine is printed by a task when it is ready for changes of its objects.
	ReadyLine = "ready"
)

// Ready requests a change of every object. Costs so far are not counted.
func (m *Meter) Ready() {
	runtime.GC()
	m.events = begin()
	fmt.Fprintln(os.Stdout, ReadyLine)
}

// SeeChange is See for a changed object, with its annotation. The last change adds four figures: event-cpu, the CPU of a change,
// event-wall, the time from Ready to the last change, and event-delay and event-delay-99, the median and the 99th percentile of
// the time since a change was written.
func (m *Meter) SeeChange(name, changed string) {
	m.See(name)
	written, err := strconv.ParseInt(changed, 10, 64)
	if err != nil {
		m.unmarked++
	}
	m.delays = append(m.delays, time.Since(time.Unix(0, written)).Seconds())
	if !m.Done() {
		return
	}
	m.Figures["event-cpu"] = (cpuTime() - m.events.cpu) / float64(m.seen)
	m.Figures["event-wall"] = time.Since(m.events.at).Seconds()
	slices.Sort(m.delays)
	m.Figures["event-delay"] = m.delays[len(m.delays)/2]
	m.Figures["event-delay-99"] = m.delays[len(m.delays)*99/100]
}
