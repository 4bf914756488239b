package store

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/anykind/anykind/unstructured"
)

// Record is an object of another server. Its resourceVersion is Revision.
type Record struct {
	Key      Key
	Revision int64
	Object   *unstructured.Lazy
}

// maxDecoded is the number of loaded objects of a resource up to which decoded objects are kept. Objects of larger resources are
// decoded for each read: they take a fraction of the memory.
const maxDecoded = 1000

// loadedObject is an object of Load. It keeps the JSON, and the decoded object if decoded is not nil.
type loadedObject struct {
	json    *unstructured.Lazy
	decoded *atomic.Pointer[Object]
}

func (l *loadedObject) decode() Object {
	if l.decoded != nil {
		if obj := l.decoded.Load(); obj != nil {
			return *obj
		}
	}
	obj, err := l.json.Object()
	if err != nil {
		return nil // never: a decoded Lazy is valid
	}
	if l.decoded != nil {
		l.decoded.Store(&obj.Object)
	}
	return obj.Object
}

// Load stores objects at their own revisions, without events. It replaces existing objects. The revision of the store becomes at
// least revision, which must not be less than the revisions of records, and is compacted: there is no older state. Load must be called before
// there are watches. An object that is twice in records is an error.
func (s *Store) Load(records []Record, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	loaded := map[resource]map[string]state{}
	for _, r := range records {
		id := resourceOf(r.Key.Group, r.Key.Resource)
		if loaded[id] == nil {
			loaded[id] = map[string]state{}
		}
		if _, isDouble := loaded[id][path(r.Key)]; isDouble {
			return fmt.Errorf("load %s: the object is there twice", r.Object)
		}
		loaded[id][path(r.Key)] = state{revision: r.Revision, loaded: &loadedObject{json: r.Object}}
	}
	for s.all.len() > 0 {
		s.compactFirst()
	}
	s.revision = max(s.revision, revision)
	s.compacted = s.revision
	for id, states := range loaded {
		s.collection(id.group, id.plural).load(states, s.revision)
	}
	return nil
}

// load replaces the records of states.
func (c *collection) load(states map[string]state, revision int64) {
	for path, loaded := range states {
		if len(states) <= maxDecoded {
			loaded.loaded.decoded = &atomic.Pointer[Object]{}
		}
		c.records[path] = &record{history: []state{loaded}}
	}
	c.keys = slices.Sorted(maps.Keys(c.records))
	c.live = len(c.keys)
	c.created = revision
}
