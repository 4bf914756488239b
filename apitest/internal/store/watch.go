package store

import (
	"slices"
)

// eventLog has the events of a resource, or of all resources, ascending by revision. nodes are the retained events. A watch holds
// its last read node, so compaction does not affect its unread events. The lag of a watch is bounded.
type eventLog struct {
	nodes   []*node
	tail    *node         // last node, retained or not; an empty node before the first event
	changed chan struct{} // closed by the next event; nil without waiters
}

type node struct {
	event    *Event
	sequence int64
	next     *node
}

func (l *eventLog) len() int { return len(l.nodes) }

func (l *eventLog) first() *Event { return l.nodes[0].event }

func (l *eventLog) last() *node {
	if l.tail == nil {
		l.tail = &node{}
	}
	return l.tail
}

func (l *eventLog) add(event *Event) {
	next := &node{event: event, sequence: l.last().sequence + 1}
	l.tail.next = next
	l.tail = next
	l.nodes = append(l.nodes, next)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *eventLog) removeFirst() *Event {
	event := l.nodes[0].event
	l.nodes[0] = nil
	l.nodes = l.nodes[1:]
	return event
}

func (l *eventLog) after(revision int64) []*node {
	i, _ := slices.BinarySearchFunc(l.nodes, revision+1, func(n *node, revision int64) int {
		return int(n.event.Revision - revision)
	})
	return l.nodes[i:]
}

func (l *eventLog) wait() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Watch reads the events of a resource from a revision on. It must be used by a single goroutine.
type Watch struct {
	store     *Store
	log       *eventLog
	last      *node
	namespace string
	revision  int64
}

// Watch returns a watch of the events after revision from, 0 for the current revision. namespace "" means all. The errors are
// ErrCompacted and ErrFuture.
func (s *Store) Watch(group, plural, namespace string, from int64) (*Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch(&s.collection(group, plural).events, namespace, from)
}

// WatchAll returns a watch of the events of all resources.
func (s *Store) WatchAll(from int64) (*Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch(&s.all, "", from)
}

func (s *Store) watch(log *eventLog, namespace string, from int64) (*Watch, error) {
	switch {
	case from == 0:
		from = s.revision
	case from > s.revision:
		return nil, ErrFuture
	case from < s.compacted:
		return nil, ErrCompacted
	}
	w := &Watch{store: s, log: log, last: log.last(), namespace: namespace, revision: from}
	if after := log.after(from); len(after) > 0 {
		w.last = &node{sequence: after[0].sequence - 1, next: after[0]}
	}
	return w, nil
}

// Next returns up to limit events since the last call, and the revision up to which events are complete. more is closed when
// there may be more events. Next does not block. It returns ErrCompacted if the watch lags behind by more events than the store
// retains.
func (w *Watch) Next(limit int) (events []Event, revision int64, more <-chan struct{}, err error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.log.tail.sequence-w.last.sequence > int64(w.store.limit) {
		return nil, w.revision, nil, ErrCompacted
	}
	for w.last.next != nil {
		if len(events) == limit {
			return events, w.revision, closedChannel(), nil
		}
		w.last = w.last.next
		event := w.last.event
		w.revision = event.Revision
		if w.namespace == "" || w.namespace == event.Key.Namespace {
			events = append(events, *event)
		}
	}
	w.revision = w.store.revision
	return events, w.revision, w.log.wait(), nil
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
