// Package store holds all objects of a server with their history, under a single revision like etcd.
//
// Every write makes the next revision and an event. The history of a key is its latest state and the states replaced by retained
// events. Lists and watches at a revision read the history. Compaction removes the oldest events and the states replaced by them.
// Memory is bounded: a store holds the latest states and, for its limit of retained events, as many older states. A lagging watch
// may hold as many more.
//
// Objects are immutable: writers must not modify an object after passing it, and readers modify copies.
package store

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// Object is the decoded JSON of an object.
type Object = map[string]any

// Key identifies an object by the group and plural of its resource, independent of the version. Objects of a resource with two groups
// have the key of either; an Event has the one of the core group.
type Key struct{ Group, Resource, Namespace, Name string }

// Event is a write. Object is the new state, or the last state for DELETED; its resourceVersion is Revision. Previous is the
// replaced state or nil.
type Event struct {
	Type             watch.EventType
	Key              Key
	Object, Previous Object
	Revision         int64
}

// The errors of writes and reads. Callers convert them to API errors.
var (
	ErrExists    = errors.New("the object exists")
	ErrNotFound  = errors.New("the object does not exist")
	ErrConflict  = errors.New("the object has a different resourceVersion")
	ErrCompacted = errors.New("the revision has been compacted")
	ErrFuture    = errors.New("the revision is in the future")
)

// DefaultLimit is the default number of retained events.
const DefaultLimit = 10_000

// Store is a versioned object store. It is safe for concurrent use.
type Store struct {
	mu        sync.RWMutex
	limit     int
	revision  int64
	compacted int64
	all       eventLog
	resources map[resource]*collection
	onWrite   func(Event)
}

type resource struct{ group, plural string }

// resourceOf returns the collection's resource. The Events of events.k8s.io are those of the core group.
func resourceOf(group, plural string) resource {
	if group == "events.k8s.io" && plural == "events" {
		group = ""
	}
	return resource{group, plural}
}

// collection has the objects and events of a resource.
type collection struct {
	keys    []string // keys of records, ascending
	records map[string]*record
	events  eventLog
	live    int
	created int64 // revision of the last creation
}

// record has the states of a key, ascending by revision.
type record struct{ history []state }

// state is an object from a revision on. It is a deletion if both object and loaded are nil.
type state struct {
	revision int64
	object   Object
	loaded   *loadedObject
}

// get returns the object, or nil for a deletion.
func (s state) get() Object {
	if s.loaded != nil {
		return s.loaded.decode()
	}
	return s.object
}

func (s state) isDeletion() bool { return s.object == nil && s.loaded == nil }

// New returns an empty store with a limit of retained events.
func New(limit int) *Store {
	return &Store{limit: max(limit, 1), revision: 1, resources: map[resource]*collection{}}
}

// SetOnWrite sets a function to call after each write, in the writer's goroutine. Writers must not hold a lock taken by the
// function. It must be set before the store is used.
func (s *Store) SetOnWrite(onWrite func(Event)) { s.onWrite = onWrite }

// Revision returns the revision of the last write.
func (s *Store) Revision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// Compacted returns the oldest revision available for lists and watches.
func (s *Store) Compacted() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.compacted
}

// Len returns the number of objects of a resource.
func (s *Store) Len(group, plural string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.resources[resourceOf(group, plural)]; c != nil {
		return c.live
	}
	return 0
}

// Get returns the latest state of an object.
func (s *Store) Get(key Key) (Object, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj := s.latest(key)
	return obj, obj != nil
}

// Create adds an object and returns it with its resourceVersion, or ErrExists.
func (s *Store) Create(key Key, obj Object) (Object, error) {
	return s.commit(func() (*Event, Object, error) {
		if s.latest(key) != nil {
			return nil, nil, ErrExists
		}
		return s.write(watch.Added, key, obj, nil)
	})
}

// Update replaces an object if it has the expected resourceVersion, "" for any, and returns it with its new resourceVersion. An
// unchanged object is not written. The errors are ErrNotFound and ErrConflict.
func (s *Store) Update(key Key, expected string, obj Object) (Object, error) {
	return s.commit(func() (*Event, Object, error) {
		current, err := s.expect(key, expected)
		if err != nil {
			return nil, nil, err
		}
		if equalExceptVersion(current, obj) {
			return nil, current, nil
		}
		return s.write(watch.Modified, key, obj, current)
	})
}

// Delete removes an object if it has the expected resourceVersion, "" for any. It returns last, or the latest state if last is
// nil, with the resourceVersion of the deletion. The errors are ErrNotFound and ErrConflict.
func (s *Store) Delete(key Key, expected string, last Object) (Object, error) {
	return s.commit(func() (*Event, Object, error) {
		current, err := s.expect(key, expected)
		if err != nil {
			return nil, nil, err
		}
		if last == nil {
			last = current
		}
		return s.write(watch.Deleted, key, last, current)
	})
}

// commit calls write under the lock, and onWrite after releasing it.
func (s *Store) commit(write func() (*Event, Object, error)) (Object, error) {
	s.mu.Lock()
	event, obj, err := write()
	s.mu.Unlock()
	if event != nil && s.onWrite != nil {
		s.onWrite(*event)
	}
	return obj, err
}

// List returns the objects of a resource at a revision, 0 for the latest, and that revision. namespace "" means all. Objects are
// ordered by namespace and name, like etcd keys. The errors are ErrCompacted and ErrFuture.
func (s *Store) List(group, plural, namespace string, at int64) ([]Object, int64, error) {
	page, err := s.Page(Query{Group: group, Resource: plural, Namespace: namespace, Revision: at})
	return page.Objects(), page.Revision, err
}

// Objects returns the latest states of all objects, ordered by resource, namespace and name.
func (s *Store) Objects() (objects []Object) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := slices.SortedFunc(maps.Keys(s.resources), func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.plural, b.plural))
	})
	for _, id := range ids {
		c := s.resources[id]
		for _, path := range c.keys {
			if state := c.records[path].at(s.revision); !state.isDeletion() {
				objects = append(objects, state.get())
			}
		}
	}
	return objects
}

// Compact removes the events up to a revision, and the states replaced by them. A future revision means the latest.
func (s *Store) Compact(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision = min(revision, s.revision)
	for s.all.len() > 0 && s.all.first().Revision <= revision {
		s.compactFirst()
	}
	s.compacted = max(s.compacted, revision)
}

// History returns the retained events of an object, oldest first. If older events were discarded, the first event is ADDED with
// the object's state at that time. The current state is always included.
func (s *Store) History(key Key) []Event {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var events []Event
	id := resourceOf(key.Group, key.Resource)
	key.Group = id.group
	c := s.resources[id]
	if c == nil {
		return nil
	}
	for _, n := range c.events.after(0) {
		if n.event.Key == key {
			events = append(events, *n.event)
		}
	}
	oldest := s.latest(key)
	if len(events) > 0 {
		oldest = events[0].Previous
	}
	if oldest != nil {
		revision, _ := strconv.ParseInt(Version(oldest), 10, 64)
		events = slices.Insert(events, 0, Event{Type: watch.Added, Key: key, Object: oldest, Revision: revision})
	}
	return events
}

// Advance adds n revisions without events, like writes to unobserved resources.
func (s *Store) Advance(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision += max(n, 0)
}

func (s *Store) latest(key Key) Object {
	c := s.resources[resourceOf(key.Group, key.Resource)]
	if c == nil {
		return nil
	}
	if r := c.records[path(key)]; r != nil {
		return r.history[len(r.history)-1].get()
	}
	return nil
}

func (s *Store) expect(key Key, version string) (Object, error) {
	current := s.latest(key)
	if current == nil {
		return nil, ErrNotFound
	}
	if version != "" && version != Version(current) {
		return current, ErrConflict
	}
	return current, nil
}

// write makes the next revision: an event and a state of its key.
func (s *Store) write(kind watch.EventType, key Key, obj, previous Object) (*Event, Object, error) {
	key.Group = resourceOf(key.Group, key.Resource).group
	s.revision++
	obj = withVersion(obj, s.revision)
	c := s.collection(key.Group, key.Resource)
	c.add(path(key), kind, state{revision: s.revision, object: obj})
	event := &Event{Type: kind, Key: key, Object: obj, Previous: previous, Revision: s.revision}
	c.events.add(event)
	s.all.add(event)
	for s.all.len() > s.limit {
		s.compactFirst()
	}
	return event, obj, nil
}

func (s *Store) collection(group, plural string) *collection {
	id := resourceOf(group, plural)
	c := s.resources[id]
	if c == nil {
		c = &collection{records: map[string]*record{}}
		s.resources[id] = c
	}
	return c
}

func (c *collection) add(path string, kind watch.EventType, next state) {
	r := c.records[path]
	if r == nil {
		r = &record{}
		c.records[path] = r
		i, _ := slices.BinarySearch(c.keys, path)
		c.keys = slices.Insert(c.keys, i, path)
	}
	switch kind {
	case watch.Added:
		c.live++
		c.created = next.revision
	case watch.Deleted:
		c.live--
		next.object = nil
	default: // modifications keep the count
	}
	r.history = append(r.history, next)
}

// compactFirst removes the oldest event and the states before it.
func (s *Store) compactFirst() {
	event := s.all.removeFirst()
	s.compacted = event.Revision
	c := s.resources[resourceOf(event.Key.Group, event.Key.Resource)]
	c.events.removeFirst()
	key := path(event.Key)
	r := c.records[key]
	from := 0
	for from < len(r.history) && r.history[from].revision < event.Revision {
		from++
	}
	if event.Type == watch.Deleted {
		from++
	}
	r.history = slices.Delete(r.history, 0, from)
	if len(r.history) == 0 {
		delete(c.records, key)
		i, _ := slices.BinarySearch(c.keys, key)
		c.keys = slices.Delete(c.keys, i, i+1)
	}
}

// at returns the state at a revision. It is a deletion if the object did not exist.
func (r *record) at(revision int64) state {
	for i := len(r.history) - 1; i >= 0; i-- {
		if r.history[i].revision <= revision {
			return r.history[i]
		}
	}
	return state{}
}

// path is the part of an etcd key that determines the order of lists.
func path(key Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// Version returns an object's resourceVersion.
func Version(obj Object) string {
	version := nested.String(obj, "metadata", "resourceVersion")
	return version
}

func withVersion(obj Object, revision int64) Object {
	obj = maps.Clone(obj)
	metadata := nested.Map(obj, "metadata")
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = strconv.FormatInt(revision, 10)
	obj["metadata"] = metadata
	return obj
}

func equalExceptVersion(a, b Object) bool {
	return reflect.DeepEqual(withVersion(a, 0), withVersion(b, 0))
}
