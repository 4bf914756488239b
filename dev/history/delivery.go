package history

import (
	"slices"
	"strings"
)

// lastingDelivered checks that each stream and cache has etcd's state when it has settled.
func lastingDelivered(h *History) (found []Violation) {
	delivered := make([]map[ID]int, len(h.Observers)) // the last observation of each key
	for i := range h.Observations {
		o := &h.Observations[i]
		if o.Kind == Settled {
			found = append(found, h.unsettled(i, delivered)...)
			continue
		}
		if role := h.Observers[o.Observer].Role; o.Key == 0 || role > Operator && role != Snapshot {
			continue
		}
		if delivered[o.Observer] == nil {
			delivered[o.Observer] = map[ID]int{}
		}
		delivered[o.Observer][o.Key] = i
	}
	return found
}

// unsettled compares the last delivered versions with etcd's at the observation i.
func (h *History) unsettled(i int, delivered []map[ID]int) (found []Violation) {
	settled := &h.Observations[i]
	epoch := h.epochAt(settled.End)
	stored := map[ID]int64{}
	for _, e := range epoch.Events {
		if e.Revision > settled.Revision {
			break
		}
		stored[e.Key] = e.Revision
		if e.Deleted() {
			delete(stored, e.Key)
		}
	}
	for n, observer := range h.Observers {
		if observer.Role > Operator && observer.Role != Snapshot {
			continue
		}
		for key, revision := range stored {
			last, isDelivered := delivered[n][key]
			if strings.HasPrefix(h.texts[key], observer.Scope) && (!isDelivered || !h.Observations[last].exists() || h.Observations[last].Revision != revision) {
				found = append(found, h.violationOf(i, observer, key, revision, "the object at %d was not delivered", revision))
			}
		}
		for key, last := range delivered[n] {
			if _, isStored := stored[key]; !isStored && h.Observations[last].exists() {
				found = append(found, h.violationOf(i, observer, key, settled.Revision, "the deletion was not delivered"))
			}
		}
	}
	return found
}

// listsConsistent checks that a stream has the state of one revision after the initial list and after each relist.
func listsConsistent(h *History) []Violation { return h.differencesAtProgress(true) }

// progressBehind checks that a stream has all changes up to a resourceVersion that it reports between lists, by a bookmark or an event.
func progressBehind(h *History) []Violation { return h.differencesAtProgress(false) }

// differencesAtProgress compares the delivered state with etcd's at each Progress, those that end lists or all others.
func (h *History) differencesAtProgress(atLists bool) (found []Violation) {
	streams := make([]*stream, len(h.Observers))
	for i := range h.Observations {
		o := &h.Observations[i]
		observer := h.Observers[o.Observer]
		if o.Kind == Settled || observer.Role != Follower {
			continue
		}
		s := streams[o.Observer]
		if s == nil {
			s = newStream(h, observer, 0)
			s.isListing = true
			streams[o.Observer] = s
		}
		switch {
		case o.Kind == Relist:
			s.isListing = true
		case o.Kind == Progress:
			s = s.atProgress(h, o)
			streams[o.Observer] = s
			if s.isListing == atLists {
				found = append(found, s.report(h, i)...)
			}
			s.isListing = false
		case o.Key != 0:
			s.deliver(o)
		}
	}
	return found
}

// stream is the delivered state of a Follow, and etcd's state at its progress.
type stream struct {
	observer  *Observer
	epoch     int
	events    []Event // in the scope, after the revision
	revision  int64
	stored    map[ID]int64
	delivered map[ID]int64
	differing map[ID]bool
	reported  map[ID]bool
	isListing bool
}

func newStream(h *History, observer *Observer, epoch int) *stream {
	s := &stream{observer: observer, epoch: epoch, stored: map[ID]int64{}, delivered: map[ID]int64{}, differing: map[ID]bool{}, reported: map[ID]bool{}}
	for _, e := range h.Epochs[epoch].Events {
		if strings.HasPrefix(h.texts[e.Key], observer.Scope) {
			s.events = append(s.events, e)
		}
	}
	return s
}

func (s *stream) compare(key ID) {
	if s.stored[key] == s.delivered[key] {
		delete(s.differing, key)
	} else {
		s.differing[key] = true
	}
}

func (s *stream) deliver(o *Observation) {
	s.delivered[o.Key] = 0
	if o.exists() {
		s.delivered[o.Key] = o.Revision
	}
	s.compare(o.Key)
}

// advance applies etcd's events up to a revision.
func (s *stream) advance(revision int64) {
	s.revision = revision
	for len(s.events) > 0 && s.events[0].Revision <= revision {
		e := s.events[0]
		s.events = s.events[1:]
		s.stored[e.Key] = e.Revision
		if e.Deleted() {
			s.stored[e.Key] = 0
		}
		s.compare(e.Key)
	}
}

// atProgress advances the stream. A difference after a restore of etcd may be the state of the next epoch.
func (s *stream) atProgress(h *History, o *Observation) *stream {
	isBack := o.Revision < s.revision
	if !isBack {
		s.advance(o.Revision)
	}
	if !isBack && len(s.differing) == 0 || s.epoch+1 >= len(h.Epochs) || h.Epochs[s.epoch+1].Begin > o.End {
		return s
	}
	next := newStream(h, s.observer, s.epoch+1)
	next.isListing = s.isListing
	next.delivered = s.delivered
	for key := range s.delivered {
		next.compare(key)
	}
	next.advance(o.Revision)
	if !isBack && len(next.differing) > 0 {
		return s
	}
	return next
}

func (s *stream) report(h *History, i int) (found []Violation) {
	o := &h.Observations[i]
	if o.Revision < s.revision {
		return []Violation{h.violation(i, "progress at %d after %d", o.Revision, s.revision)}
	}
	if !h.Epochs[s.epoch].isKnown(o.Revision) {
		return nil
	}
	for key := range s.differing {
		if !s.reported[key] {
			found = append(found, h.violationOf(i, s.observer, key, o.Revision, "at %d the delivered revision is %d, etcd has %d (0: none)", o.Revision, s.delivered[key], s.stored[key]))
		}
		s.reported[key] = true
	}
	return found
}

// syncedComplete checks that the consumers of a cache have all objects at Synced that exist during the whole run, unless the server
// rejects a namespace of the cache.
func syncedComplete(h *History) (found []Violation) {
	delivered := make([]map[ID]bool, len(h.Observers))
	begun := make([]int64, len(h.Observers))
	for i := range h.Observations {
		o := &h.Observations[i]
		if o.Kind == Settled || h.Observers[o.Observer].Role != Consumer {
			continue
		}
		if delivered[o.Observer] == nil {
			delivered[o.Observer] = map[ID]bool{}
			begun[o.Observer] = o.Begin
		}
		delivered[o.Observer][o.Key] = true
		if o.Kind != Synced {
			continue
		}
		epoch := h.epochAt(begun[o.Observer])
		for _, e := range epoch.Events {
			isOld := e.At < begun[o.Observer] && strings.HasPrefix(h.texts[e.Key], h.Observers[o.Observer].Scope)
			if isOld && !delivered[o.Observer][e.Key] && !slices.ContainsFunc(epoch.of(e.Key), Event.Deleted) {
				found = append(found, h.violationOf(i, h.Observers[o.Observer], e.Key, e.Revision, "the object is missing at Synced"))
				delivered[o.Observer][e.Key] = true
			}
		}
	}
	return found
}
