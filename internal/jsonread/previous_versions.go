package jsonread

import (
	"hash/maphash"
	"maps"
	"slices"
	"weak"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// previousVersions holds a weak pointer to the last version of each object, with digests of its subtrees.
type previousVersions struct {
	seeds [2]maphash.Seed
	last  map[string]weak.Pointer[version] // by UID
	limit int                              // length of last at which unreferenced versions are dropped

	// State of the object being read:
	uid          string
	previous     *version // nil for none
	digests      []digest
	hasDuplicate bool // a field name occurs twice: the digests do not describe the decoded object
}

// version is a decoded object with its digests. A pointer to the object keeps its version alive.
type version struct {
	object  unstructuredv1.Unstructured
	digests []digest
}

// digest identifies a map or list by its path and JSON. The digests of nested maps and lists follow. An object has many digests,
// so a digest takes only 12 bytes.
type digest struct {
	hash   [2]uint32
	check  uint16
	within uint16 // number of following digests of nested values
}

const (
	minVersions    = 1 << 10 // minimum of limit
	minDigested    = 512     // bytes: shorter JSON is decoded quickly
	maxDigests     = 64      // of an object, approximately
	objectLevels   = 3       // digested below the object: spec, a list in spec, an element
	metadataLevels = 4       // below metadata: managedFields, an entry (its time changes with each write), its fieldsV1, their fields
)

// begin resets the state of the object being read.
func (p *previousVersions) begin() {
	p.uid = ""
	p.previous = nil
	p.digests = p.digests[:0]
	p.hasDuplicate = false
}

// add returns the object just read, and remembers it by its UID. A deleted object is forgotten: it has no next version.
func (p *previousVersions) add(fields map[string]any, deleted bool) *unstructuredv1.Unstructured {
	read := &version{object: unstructuredv1.Unstructured{Object: fields}}
	switch {
	case deleted:
		delete(p.last, p.uid)
	case p.uid != "" && !p.hasDuplicate:
		if len(p.last) >= p.limit {
			maps.DeleteFunc(p.last, func(_ string, last weak.Pointer[version]) bool { return last.Value() == nil })
			p.limit = max(minVersions, 2*len(p.last))
		}
		read.digests = slices.Clone(p.digests)
		p.last[p.uid] = weak.Make(read)
	}
	p.begin()
	return &read.object
}

// fields returns the fields of the object at n in the previous version, or nil.
func (p *previousVersions) fields(n node) map[string]any {
	previous := n.previous
	switch {
	case p.previous == nil:
		return nil
	case n.path == 0:
		return p.previous.object.Object
	case n.metadata:
		previous = p.previous.object.Object["metadata"]
	}
	fields, _ := previous.(map[string]any)
	return fields
}

func (p *previousVersions) digest(at path, text []byte) digest {
	hash := maphash.Bytes(p.seeds[0], text) + uint64(at*pathFactor)
	return digest{
		hash:  [2]uint32{uint32(hash), uint32(hash >> 32)}, //nolint:gosec // its halves
		check: uint16(maphash.Bytes(p.seeds[1], text)),     //nolint:gosec // a part of it
	}
}

// reuse reports whether the previous version has the same JSON at this path. If so, it copies the digests.
func (p *previousVersions) reuse(at path, text []byte) bool {
	d := p.digest(at, text)
	for i, old := range p.previous.digests {
		if old.hash == d.hash && old.check == d.check {
			p.digests = append(p.digests, p.previous.digests[i:][:old.within+1]...)
			return true
		}
	}
	return false
}

// path is the hash of a value's location in an object. 0 is the object itself.
type path uint64

const pathFactor = 0x9E3779B97F4A7C15

func (p *previousVersions) memberPath(parent path, name string) path {
	return parent*pathFactor + path(maphash.String(p.seeds[0], name))
}

// node is a map or list being read, with its counterpart in the previous version.
type node struct {
	path     path
	levels   int // digested below it; 0 for none
	previous any // nil for none; for the object itself and its metadata see fields
	metadata bool
}

// nodeMember reads a member's value in the object at n. The previous version is known from metadata.uid on. Servers send metadata
// first, with name and UID before any large field.
func (r *Reader) nodeMember(n node, name string) (any, error) {
	versions := &r.interner.versions
	c, err := r.Peek()
	switch {
	case err == nil && c == '{' && n.path == 0 && name == "metadata": // always a new map
		return r.object(node{path: versions.memberPath(0, name), levels: metadataLevels, metadata: true})
	case err == nil && r.isDigested(c):
		return r.reuseOrDecode(node{
			path: versions.memberPath(n.path, name), levels: n.levels - 1, previous: versions.fields(n)[name],
		})
	}
	v, err := r.Value()
	if uid, isString := v.(string); isString && n.metadata && name == "uid" {
		versions.uid = uid
		versions.previous = versions.last[uid].Value()
	}
	return v, err
}

func (r *Reader) nodeElement(n node, i int) (any, error) {
	if c, err := r.Peek(); err != nil || !r.isDigested(c) {
		return r.Value()
	}
	at := node{path: n.path*pathFactor + path(i) + 1, levels: n.levels - 1}
	if previous, _ := n.previous.([]any); i < len(previous) {
		at.previous = previous[i]
	}
	return r.reuseOrDecode(at)
}

// isDigested reports whether a value beginning with c may have a digest.
func (r *Reader) isDigested(c byte) bool {
	versions := &r.interner.versions
	return (c == '{' || c == '[') && versions.uid != "" && len(versions.digests) < maxDigests
}

// reuseOrDecode returns the previous version's map or list at n if its JSON is unchanged. Otherwise it decodes the value.
func (r *Reader) reuseOrDecode(n node) (any, error) {
	versions := &r.interner.versions
	switch n.previous.(type) {
	case map[string]any, []any:
		text := r.scanAhead()
		if len(text) >= r.interner.MinDigested && versions.reuse(n.path, text) {
			r.pos += len(text)
			return n.previous, r.Charge(r.scanner.cost)
		}
	}
	start := r.Offset()
	own := len(versions.digests)
	versions.digests = append(versions.digests, digest{})
	v, err := r.internedValue(n)
	if err == nil && r.pinned && r.Offset()-start >= int64(r.interner.MinDigested) {
		d := versions.digest(n.path, r.buf[start-r.dropped:r.pos])
		d.within = uint16(len(versions.digests) - own - 1) //nolint:gosec // less than a few times maxDigests
		versions.digests[own] = d
	} else { // short, or its beginning is no longer in the buffer
		versions.digests = slices.Delete(versions.digests, own, own+1)
	}
	return v, err
}
