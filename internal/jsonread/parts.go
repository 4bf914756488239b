package jsonread

import unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// This file interns the maps and lists of encodings other than JSON, by their encoded text. It uses the tables of JSON: a text begins
// with the type of its value, so that equal texts have equal values, and never like JSON.

// Intern makes a borrowed Reader intern the parts of its next value.
func (r *Reader) Intern(interner *Interner) {
	r.interner = interner
	r.objectStart = 0
	r.lookahead = 0
}

// Node is the location of a map or list in an object being read. The zero value is a location without a previous version.
type Node struct{ node }

// IsMetadata reports whether n is the object's metadata, which is always a new map.
func (n Node) IsMetadata() bool { return n.metadata }

// BeginObject begins an object and returns its node.
func (in *Interner) BeginObject() Node {
	in.versions.begin()
	return Node{node{levels: objectLevels}}
}

// SetUID sets the UID of the object being read. Its previous version is known from then on.
func (in *Interner) SetUID(uid string) {
	in.versions.uid = uid
	in.versions.previous = in.versions.last[uid].Value()
}

// NewObject returns the object just read, like [Reader.NewObject].
func (in *Interner) NewObject(fields map[string]any, deleted bool) *unstructuredv1.Unstructured {
	return in.versions.add(fields, deleted)
}

// Member returns the node of a member of the object at n.
func (in *Interner) Member(n Node, name string) Node {
	switch {
	case n.levels == 0:
		return Node{}
	case n.path == 0 && name == "metadata":
		return Node{node{path: in.versions.memberPath(0, name), levels: metadataLevels, metadata: true}}
	}
	return Node{node{path: in.versions.memberPath(n.path, name), levels: n.levels - 1, previous: in.versions.fields(n.node)[name]}}
}

// Element returns the node of an element of the list at n.
func (in *Interner) Element(n Node, i int) Node {
	if n.levels == 0 {
		return Node{}
	}
	at := node{path: n.path*pathFactor + path(i) + 1, levels: n.levels - 1}
	if previous, _ := n.previous.([]any); i < len(previous) {
		at.previous = previous[i]
	}
	return Node{at}
}

// Part returns the map or list at n, a value of the field name. found means that it is shared with the previous version or with other
// objects. Otherwise it is from decode, which may overwrite text.
func (in *Interner) Part(n Node, name string, text []byte, decode func() (any, error)) (v any, found bool, err error) {
	versions := &in.versions
	if n.path == 0 || versions.uid == "" || len(text) < in.MinDigested || len(versions.digests) >= maxDigests {
		return in.internedText(name, text, decode)
	}
	switch n.previous.(type) {
	case map[string]any, []any:
		if versions.reuse(n.path, text) {
			return n.previous, true, nil
		}
	}
	own := len(versions.digests)
	versions.digests = append(versions.digests, versions.digest(n.path, text))
	v, found, err = in.internedText(name, text, decode)
	versions.digests[own].within = uint16(len(versions.digests) - own - 1) //nolint:gosec // less than a few times maxDigests
	return v, found, err
}

// textCost is the memory that generations count for a byte of text.
const textCost = 16

func (in *Interner) internedText(name string, text []byte, decode func() (any, error)) (v any, found bool, err error) {
	counter := &in.hits[stringHash([]byte(name))>>56]
	if len(text) > maxInternedJSON || !counter.shouldProbe() {
		v, err = decode()
		return v, false, err
	}
	size := int64(len(text)) * textCost
	if v, found = in.lookup(text, size); found {
		counter.hit()
		return v, true, nil
	}
	counter.miss()
	if !in.seenBefore(text) {
		v, err = decode()
		return v, false, err
	}
	kept := string(text)
	if v, err = decode(); err == nil {
		in.add(kept, v, size)
	}
	return v, false, err
}
