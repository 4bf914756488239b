//go:build unix

package measure

import (
	"runtime/debug"
	"strconv"
)

// Sequence is the annotation with the number of a change among all changes of a churn, which go round the objects.
const Sequence = "sequence"

// SeeSequence is See for all changes of an object up to that with this number, for a consumer to which changes are
// delivered merged. The objects are those that the changes go round.
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

// Resident adds the figures KIND-rss, the RSS of this process once all free memory is returned to the system, and
// KIND-peak-rss, the peak before that.
func (m *Meter) Resident(kind string) {
	m.Figures[kind+"-peak-rss"] = float64(residentBytes("VmHWM"))
	debug.FreeOSMemory()
	m.Figures[kind+"-rss"] = float64(residentBytes("VmRSS"))
}
