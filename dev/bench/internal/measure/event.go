//go:build unix

package measure

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
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

// Receive requests the changes, and receives all of them in each of several concurrent watches. watch calls see with the name and the
// resourceVersion of each changed object until that returns true. A watch that the server ends earlier, because it lags, is resumed.
func (m *Meter) Receive(watches int, resourceVersion string, watch func(resourceVersion string, see func(name, resourceVersion string) (done bool)) error) error {
	m.Ready()
	errs := make([]error, watches)
	var all sync.WaitGroup
	for i := range watches {
		all.Go(func() {
			received := 0
			version := resourceVersion
			for received < m.Count && errs[i] == nil {
				errs[i] = watch(version, func(name, resourceVersion string) bool {
					if i == 0 {
						m.See(name)
					}
					version = resourceVersion
					received++
					return received == m.Count
				})
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
