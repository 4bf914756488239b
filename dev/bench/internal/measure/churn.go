//go:build unix

package measure

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sequence is the annotation with the number of a change among all changes of a churn. The changes cycle through the objects.
const Sequence = "sequence"

// SeeSequence is See for all changes of an object up to the given sequence number, because merged changes are delivered once.
// objects is the number of objects in the cycle.
func (m *Meter) SeeSequence(name, sequence string, objects int) {
	number, err := strconv.Atoi(sequence)
	if err != nil {
		m.unmarked++
		m.See(name)
		return
	}
	if m.rounds == nil {
		m.rounds = map[string]int{}
	}
	for round := number/objects + 1; m.rounds[name] < round; m.rounds[name]++ {
		m.See(name)
	}
}

// ChurnTimeout limits a consumer's wait for the next change of a churn.
const ChurnTimeout = 2 * time.Minute

// maxLate limits the objects named by MissingChanges.
const maxLate = 10

// MissingChanges returns the error of a churn with missing changes. It names the objects with changes not seen by SeeSequence.
func (m *Meter) MissingChanges(objects int) error {
	rounds := m.Count / max(objects, 1) // the minimum for each object
	var late []string
	for name, seen := range m.rounds {
		if seen < rounds {
			late = append(late, fmt.Sprintf("%s has %d of %d", name, seen, rounds))
		}
	}
	slices.Sort(late)
	if len(late) > maxLate {
		late = append(late[:maxLate], fmt.Sprintf("%d more", len(late)-maxLate))
	}
	return fmt.Errorf("%d of %d changes seen and none for %s: %d of %d objects have not changed; changes of the others: %s",
		m.seen, m.Count, ChurnTimeout, objects-len(m.rounds), objects, strings.Join(late, ", "))
}

// Resident adds figures of memory. KIND-rss is the RSS of this process after returning all free memory to the system, KIND-live
// the bytes of its live objects, KIND-spans the bytes of their heap spans, including free room between objects, and KIND-peak-rss
// the peak RSS before that.
func (m *Meter) Resident(kind string) {
	m.Figures[kind+"-peak-rss"] = float64(residentBytes("VmHWM"))
	runtime.GC() // FreeOSMemory's second collection frees objects held by pools or marked free in the first
	debug.FreeOSMemory()
	m.Figures[kind+"-rss"] = float64(residentBytes("VmRSS"))
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	m.Figures[kind+"-live"] = float64(now.HeapAlloc)
	m.Figures[kind+"-spans"] = float64(now.HeapInuse)
}
