package history

import (
	"fmt"
	"slices"
	"strings"
)

// History is a run: the epochs of etcd, all observations in the order of their ends, and the messages of the API servers.
type History struct {
	Epochs       []*Epoch
	Observers    []*Observer
	Observations []Observation
	Messages     []Message

	texts []string
}

// Settle adds an observation of kind Settled.
func (h *History) Settle(at, revision int64) {
	h.Observations = append(h.Observations, Observation{Begin: at, End: at, Kind: Settled, Revision: revision})
}

// Property is a promise of the library.
type Property struct {
	Name  string
	Check func(h *History) []Violation
}

// Properties returns all properties.
func Properties() []Property {
	return []Property{
		{"no version goes back", versionsForward},
		{"no object returns after its deletion", noReturn},
		{"every change that lasts is delivered", lastingDelivered},
		{"the state after a list is that of one revision", listsConsistent},
		{"progress never runs ahead of the delivered changes", progressBehind},
		{"Synced follows all objects from before the start", syncedComplete},
		{"own writes are read", ownWritesRead},
		{"Wait does not return an older state", waitsForward},
		{"no two reconciles of a key overlap", reconcilesExclusive},
		{"no leader writes after its successor", leadersExclusive},
		{"Added and Deleted are paired", changesPaired},
		{"requests are linearizable", requestsLinearizable},
		{"no client has what no server has sent", sentBefore},
	}
}

// Violation is an observation that violates a property.
type Violation struct {
	Property string
	Text     string
	// Around has the observations of the same key by the same observer, the messages of the servers to its process, and etcd's events of
	// the key.
	Around []string
}

func (v Violation) String() string {
	return v.Property + ": " + v.Text + "\n\t" + strings.Join(v.Around, "\n\t")
}

// Check returns the violations of all properties.
func (h *History) Check() (found []Violation) {
	for _, property := range Properties() {
		for _, violation := range property.Check(h) {
			violation.Property = property.Name
			found = append(found, violation)
		}
	}
	return found
}

// contextSize is the number of observations and of events before and after a violation.
const contextSize = 4

// violation returns a violation by the observation i.
func (h *History) violation(i int, format string, args ...any) Violation {
	o := &h.Observations[i]
	return h.violationOf(i, h.Observers[o.Observer], o.Key, o.Revision, format, args...)
}

// violationOf returns a violation by an observer, of a key at a revision.
func (h *History) violationOf(i int, observer *Observer, key ID, revision int64, format string, args ...any) Violation {
	v := Violation{Text: fmt.Sprintf("%s: %s: %s", observer.Name, h.texts[key], fmt.Sprintf(format, args...))}
	var before, after []string
	for n := range h.Observations {
		o := &h.Observations[n]
		switch {
		case o.Kind == Settled || o.Key != key && o.Kind != Relist && n != i || h.Observers[o.Observer] != observer:
		case n <= i:
			before = append(before, h.describe(o))
		case len(after) < contextSize:
			after = append(after, h.describe(o))
		}
	}
	v.Around = append(before[max(0, len(before)-contextSize-1):], after...)
	if observer.Process != 0 {
		v.Around = append(v.Around, h.messagesAround(observer.Process, key, h.Observations[i].End)...)
	}
	for n, epoch := range h.Epochs {
		for _, e := range around(epoch.of(key), revision) {
			what := map[bool]string{false: "put", true: "delete"}[e.Deleted()]
			v.Around = append(v.Around, fmt.Sprintf("etcd, epoch %d: %s at %d", n, what, e.Revision))
		}
	}
	return v
}

func around(events []Event, revision int64) []Event {
	n := 0
	for n < len(events) && events[n].Revision <= revision {
		n++
	}
	return events[max(0, n-contextSize):min(len(events), n+contextSize)]
}

// of returns the events of a key.
func (e *Epoch) of(key ID) []Event {
	if e.byKey == nil {
		e.byKey = map[ID][]Event{}
		for _, event := range e.Events {
			e.byKey[event.Key] = append(e.byKey[event.Key], event)
		}
	}
	return e.byKey[key]
}

// isKnown reports whether the state at a revision was recorded.
func (e *Epoch) isKnown(revision int64) bool {
	return !slices.ContainsFunc(e.Gaps, func(g Gap) bool { return g.First < revision && revision < g.Last })
}

// isComplete reports whether no revision is missing after the list at the begin of the epoch.
func (e *Epoch) isComplete() bool {
	return !slices.ContainsFunc(e.Gaps[min(1, len(e.Gaps)):], func(g Gap) bool { return g.First+1 < g.Last })
}

// deletedAfter reports whether a key was deleted after a revision. It is true if that is unknown.
func (e *Epoch) deletedAfter(key ID, revision int64) bool {
	return !e.isKnown(revision) || slices.ContainsFunc(e.of(key), func(event Event) bool { return event.Deleted() && event.Revision > revision })
}

// epochAt returns the last epoch that began before a time.
func (h *History) epochAt(time int64) *Epoch {
	n := len(h.Epochs) - 1
	for n > 0 && h.Epochs[n].Begin > time {
		n--
	}
	return h.Epochs[n]
}

// spansRestore reports whether etcd was restored between two times.
func (h *History) spansRestore(first, last int64) bool {
	return h.epochAt(first) != h.epochAt(last)
}

// run is the indexes of an observer's observations of a key, in order.
type run struct {
	observer *Observer
	indexes  []int
	// isContinued is set after a restore of etcd: the observer then goes on with an older state.
	isContinued bool
}

// runs returns the runs of all observers with the roles. A restore of etcd permits a return to an older state.
func (h *History) runs(roles ...Role) (all []run) {
	type source struct {
		observer uint16
		key      ID
	}
	grouped := map[source]int{}
	for i := range h.Observations {
		o := &h.Observations[i]
		if o.Key == 0 || !slices.Contains(roles, h.Observers[o.Observer].Role) {
			continue
		}
		n, found := grouped[source{o.Observer, o.Key}]
		if !found {
			n = len(all)
			grouped[source{o.Observer, o.Key}] = n
			all = append(all, run{observer: h.Observers[o.Observer]})
		}
		all[n].indexes = append(all[n].indexes, i)
	}
	if len(h.Epochs) == 1 {
		return all
	}
	var split []run
	for _, whole := range all {
		split = append(split, h.splitAtRestores(whole)...)
	}
	return split
}

func (h *History) splitAtRestores(whole run) (split []run) {
	epoch := 0
	current := run{observer: whole.observer}
	floor := int64(0)
	gone := map[ID]bool{}
	last := ID(0)
	for _, i := range whole.indexes {
		o := &h.Observations[i]
		isBack := o.Revision != 0 && o.Revision < floor || o.exists() && gone[o.UID]
		if isBack && epoch+1 < len(h.Epochs) && h.Epochs[epoch+1].Begin <= o.End {
			split = append(split, current)
			current = run{observer: whole.observer, isContinued: true}
			epoch++
			floor = 0
			gone = map[ID]bool{}
		}
		floor = max(floor, o.Revision)
		if o.exists() {
			last = o.UID
		} else {
			gone[last] = true
		}
		current.indexes = append(current.indexes, i)
	}
	return append(split, current)
}

// exists reports whether the object exists by this observation of an object.
func (o *Observation) exists() bool {
	return o.Revision != 0 && o.Kind != Deleted && o.Kind != DeletedUnknown
}
