package store

import (
	"slices"
	"strings"
)

// Query selects a part of a list.
type Query struct {
	Group, Resource string
	Namespace       string // "" means all
	Revision        int64  // 0 means the latest
	// Start is the least key of the part: a name with a Namespace or for a cluster-scoped resource, otherwise NAMESPACE/NAME.
	Start string
	Limit int  // of objects; 0 means no limit
	Count bool // sets Remaining
}

// Page is a part of a list. Revision is set with an error, too.
type Page struct {
	Revision  int64
	More      bool // there are objects after the page
	Remaining int  // their number
	versions  []state
}

// Len returns the number of objects.
func (p *Page) Len() int { return len(p.versions) }

// Object returns an object of the page. Loaded objects of large resources are decoded by each call.
func (p *Page) Object(i int) Object { return p.versions[i].get() }

// Objects returns all objects.
func (p *Page) Objects() []Object {
	objects := make([]Object, 0, p.Len())
	for i := range p.versions {
		objects = append(objects, p.Object(i))
	}
	return objects
}

// Page returns the selected objects, ordered by namespace and name. Its time depends on the number of these objects, not on the
// number of all objects, unless objects were created or deleted since Revision and Count is set. The errors are ErrCompacted and
// ErrFuture.
func (s *Store) Page(q Query) (Page, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	page := Page{Revision: s.revision}
	switch {
	case q.Revision > s.revision:
		return page, ErrFuture
	case q.Revision != 0 && q.Revision < s.compacted:
		return page, ErrCompacted
	case q.Revision != 0:
		page.Revision = q.Revision
	}
	c := s.resources[resourceOf(q.Group, q.Resource)]
	if c == nil {
		return page, nil
	}
	keys := c.keysFrom(q.Namespace, q.Start)
	if q.Limit == 0 {
		page.versions = make([]state, 0, min(c.live, len(keys)))
	}
	for i, path := range keys {
		current := c.records[path].at(page.Revision)
		if current.isDeletion() {
			continue
		}
		if q.Limit > 0 && len(page.versions) == q.Limit {
			page.More = true
			if q.Count {
				page.Remaining = c.count(keys[i:], page.Revision)
			}
			break
		}
		page.versions = append(page.versions, current)
	}
	return page, nil
}

// keysFrom returns the keys of a namespace, or of all, from start on.
func (c *collection) keysFrom(namespace, start string) []string {
	if namespace == "" {
		from, _ := slices.BinarySearch(c.keys, start)
		return c.keys[from:]
	}
	prefix := namespace + "/"
	from, _ := slices.BinarySearch(c.keys, prefix+start)
	keys := c.keys[from:]
	end, _ := slices.BinarySearchFunc(keys, prefix, func(key, prefix string) int {
		if strings.HasPrefix(key, prefix) {
			return -1
		}
		return strings.Compare(key, prefix)
	})
	return keys[:end]
}

// count returns the number of objects of keys at a revision. If all keys have a live object that was created before the revision,
// nothing is read.
func (c *collection) count(keys []string, at int64) int {
	if len(c.keys) == c.live && c.created <= at {
		return len(keys)
	}
	n := 0
	for _, path := range keys {
		if !c.records[path].at(at).isDeletion() {
			n++
		}
	}
	return n
}
