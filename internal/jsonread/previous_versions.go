package jsonread

import (
	"hash/maphash"
	"maps"
	"slices"
	"weak"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// previousVersions has the last version of each object for as long as somebody holds it, and digests of its subtrees.
type previousVersions struct {
	seeds [2]maphash.Seed
	last  map[string]weak.Pointer[version] // by UID
	limit int                              // of last, at which unreferenced versions are dropped

	// Of the object that is being read:
	uid          string
	previous     *version // nil for none
	digests      []digest
	hasDuplicate bool // two members of one name: the digests are not those of what the object holds
}

// version is an object that was read. Holding the object keeps it alive.
type version struct {
	object  unstructuredv1.Unstructured
	digests []digest
}

// digest identifies the path and the JSON of a map or list. The digests of what is in it follow. It takes 12 bytes, many times
// in an object.
type digest struct {
	hash   [2]uint32
	check  uint16
	within uint16 // number of digests that follow for what is in it
}

const (
	minVersions    = 1 << 10 // kept before unreferenced ones are dropped
	minDigested    = 512     // bytes: what is shorter is soon decoded
	maxDigests     = 64      // of one object, about
	objectLevels   = 3       // digested below the object: spec, a list in it, an element
	metadataLevels = 4       // below metadata: managedFields, an entry (its time changes with each write), its fieldsV1, their fields
)

// begin forgets the object that was being read.
func (p *previousVersions) begin() {
	p.uid = ""
	p.previous = nil
	p.digests = p.digests[:0]
	p.hasDuplicate = false
}

// add returns the object that has been read, and remembers it. Of a deleted object there is no next version.
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

// fields returns the previous version's fields of the object at n; nil if it has none.
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

// reuse reports whether the previous version has this JSON at this path, and takes over its digests.
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

// path identifies where in an object a value is; 0 is the object itself.
type path uint64

const pathFactor = 0x9E3779B97F4A7C15

func (p *previousVersions) memberPath(parent path, name string) path {
	return parent*pathFactor + path(maphash.String(p.seeds[0], name))
}

// node is a map or list of an object and its counterpart in the previous version.
type node struct {
	path     path
	levels   int // that are digested below it; 0 for none
	previous any // nil for none; of the object itself and its metadata it is known once the UID has been read
	metadata bool
}

// nodeMember reads the value of a member of the object at n. The previous version is known from metadata.uid on: servers send
// metadata first, and in it name and UID before what is large.
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

// isDigested reports whether the value that begins with c may have a digest.
func (r *Reader) isDigested(c byte) bool {
	versions := &r.interner.versions
	return (c == '{' || c == '[') && versions.uid != "" && len(versions.digests) < maxDigests
}

// reuseOrDecode returns the map or list of the previous version at n if its JSON is unchanged, and decodes it otherwise.
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
	} else { // it is short, or no longer in memory from its beginning on
		versions.digests = slices.Delete(versions.digests, own, own+1)
	}
	return v, err
}
