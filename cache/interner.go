package cache

import (
	"hash/maphash"
	"math"
	"reflect"
	"slices"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An interner makes full objects that a Transform returned share equal maps and lists: what many objects have alike, and what
// an object has in common with its previous state. Objects without a Transform share theirs when they are decoded, see package
// internal/jsonread. A Transform may write to what it gets, which therefore is decoded without sharing.
//
// An object is walked twice. The first walk computes a hash of each map and list from those of its content, and compares it
// with its counterpart in the previous state. The second goes from the root to the leaves, replaces what is known and does not
// descend into it. Of a hash that came once, a part is remembered; when it comes again, the value is kept in a generation, at
// most maxGenerationSize bytes or maxLookups lookups long. The generation before is kept, too, and what is found there moves
// to the current one.
//
// Invariants: values are compared, not only their hashes, which have random seeds. What a Transform returned is never written
// to, because it may contain parts of other objects: a map or list whose content is replaced is copied. Values that JSON does
// not have are left as they are, and so is all that contains them.
//
// One goroutine at a time.
type interner struct {
	seed          maphash.Seed
	recent, older map[uint64]any // by hash
	size          int            // estimated bytes of memory of recent
	lookups       int            // in recent
	seen          [][2]uint32    // hashes that came once, each in one of few slots
	nodes         []node         // of the object that is walked
}

const (
	maxInternedSize   = 64 << 10 // bytes
	maxGenerationSize = 8 << 20
	maxLookups        = 1 << 17 // in a generation
	seenSlots         = 1 << 11
	maxNodesKept      = 4096
)

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), recent: map[uint64]any{}, seen: make([][2]uint32, seenSlots)}
}

// node is a map or list of an object. Those in it follow.
type node struct {
	digest
	value    any
	previous any    // its counterpart in the previous state
	name     string // in the map that it is in
	index    int    // in the list that it is in
	end      int    // index behind the last node in it
	shared   any    // what takes its place
}

// digest describes a value.
type digest struct {
	hash      uint64
	size      int  // estimated bytes of memory, with those of shared values
	opaque    bool // it is or contains a value that JSON does not have
	unchanged bool // it equals its counterpart
}

// Seeds of the hashes of values of different types.
const (
	nullHash = iota + 1
	falseHash
	trueHash
	intHash
	floatHash
	stringHash
	listHash
	mapHash
)

// Estimated bytes of memory of a map or list, and of one member or element.
const containerSize, memberSize, elementSize = 64, 40, 16

// object returns an object that equals obj and shares maps and lists. previous is the object's previous state, nil for none.
func (in *interner) object(obj, previous *unstructuredv1.Unstructured) *unstructuredv1.Unstructured {
	var before map[string]any
	if previous != nil {
		before = previous.Object
	}
	in.digestNode(node{value: obj.Object, previous: before})
	fields, _ := in.share(0).(map[string]any)
	clear(in.nodes)
	if in.nodes = in.nodes[:0]; cap(in.nodes) > maxNodesKept {
		in.nodes = nil
	}
	if isSame(fields, obj.Object) {
		return obj
	}
	return &unstructuredv1.Unstructured{Object: fields}
}

// digestNode returns the digest of a map or list, and appends it and all that are in it to the nodes.
func (in *interner) digestNode(n node) digest {
	i := len(in.nodes)
	in.nodes = append(in.nodes, n)
	d := digest{size: containerSize}
	switch value := n.value.(type) {
	case map[string]any:
		before, _ := n.previous.(map[string]any)
		d.opaque = value == nil
		d.unchanged = value != nil && before != nil && len(value) == len(before)
		for name, v := range value {
			old, found := before[name]
			member := in.digestValue(node{value: v, previous: old, name: name})
			d.hash += mix(maphash.String(in.seed, name), member.hash) // in any order
			d.add(member, memberSize+len(name))
			d.unchanged = d.unchanged && found
		}
		d.hash = mix(mapHash, d.hash)
	case []any:
		before, _ := n.previous.([]any)
		d.hash = listHash
		d.opaque = value == nil
		d.unchanged = value != nil && before != nil && len(value) == len(before)
		for k, v := range value {
			var old any
			if k < len(before) {
				old = before[k]
			}
			element := in.digestValue(node{value: v, previous: old, index: k})
			d.hash = mix(d.hash, element.hash)
			d.add(element, elementSize)
		}
	}
	in.nodes[i].digest = d
	in.nodes[i].end = len(in.nodes)
	return d
}

func (d *digest) add(content digest, size int) {
	d.size += size + content.size
	d.opaque = d.opaque || content.opaque
	d.unchanged = d.unchanged && content.unchanged
}

// digestValue is digestNode for any value.
func (in *interner) digestValue(n node) digest {
	d := digest{unchanged: isSame(n.value, n.previous)}
	switch v := n.value.(type) {
	case map[string]any, []any:
		return in.digestNode(n)
	case string:
		d.hash = mix(stringHash, maphash.String(in.seed, v))
		d.size = len(v)
	case int64:
		d.hash = mix(intHash, uint64(v)) //nolint:gosec // any bits do
	case float64:
		d.hash = mix(floatHash, math.Float64bits(v))
	case bool:
		d.hash = falseHash
		if v {
			d.hash = trueHash
		}
	case nil:
		d.hash = nullHash
	default:
		d.opaque = true
	}
	return d
}

// share returns node i, or a map or list that equals it.
func (in *interner) share(i int) any {
	n := in.nodes[i]
	if n.unchanged {
		return n.previous
	}
	isInterned := !n.opaque && n.size <= maxInternedSize
	if isInterned {
		if known := in.lookup(n.hash); known != nil && equals(known, n.value) {
			in.add(n, known)
			return known
		}
	}
	isCopy := false
	for k := i + 1; k < n.end; k = in.nodes[k].end {
		shared := in.share(k)
		isCopy = isCopy || !isSame(shared, in.nodes[k].value)
		in.nodes[k].shared = shared
	}
	if isCopy {
		n.value = in.copyOf(i)
	}
	if isInterned && in.seenBefore(n.hash) {
		in.add(n, n.value)
	}
	return n.value
}

// copyOf returns a copy of node i with what takes the place of the nodes in it. A member is assigned once: an assignment to a
// full map of eight members doubles it, even if it has the member.
func (in *interner) copyOf(i int) any {
	n := in.nodes[i]
	switch value := n.value.(type) {
	case map[string]any:
		result := make(map[string]any, len(value)) // maps.Clone would keep the size of a larger map
		for k := i + 1; k < n.end; k = in.nodes[k].end {
			result[in.nodes[k].name] = in.nodes[k].shared
		}
		for name, v := range value {
			switch v.(type) {
			case map[string]any, []any: // a node
			default:
				result[name] = v
			}
		}
		return result
	case []any:
		result := slices.Clip(slices.Clone(value))
		for k := i + 1; k < n.end; k = in.nodes[k].end {
			result[in.nodes[k].index] = in.nodes[k].shared
		}
		return result
	default:
		return nil
	}
}

// lookup returns the value with this hash, nil for none.
func (in *interner) lookup(hash uint64) any {
	if in.lookups++; in.lookups > maxLookups || in.size > maxGenerationSize {
		in.older = in.recent
		in.recent = make(map[uint64]any, len(in.older))
		in.size = 0
		in.lookups = 0
	}
	if v, found := in.recent[hash]; found {
		return v
	}
	return in.older[hash]
}

// add keeps a value that equals node n.
func (in *interner) add(n node, value any) {
	if known, found := in.recent[n.hash]; !found || !isSame(known, value) {
		in.recent[n.hash] = value
		in.size += n.size
	}
}

// seenBefore reports whether a hash came before, and remembers it.
func (in *interner) seenBefore(hash uint64) bool {
	slot := &in.seen[hash%seenSlots]
	rest := uint32(hash >> 32)
	if slot[0] == rest || slot[1] == rest {
		return true
	}
	slot[0], slot[1] = rest, slot[0]
	return false
}

// equals reports whether two values are equal and of the types that JSON has.
func equals(a, b any) bool {
	if isSame(a, b) {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		b, isMap := b.(map[string]any)
		if !isMap || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if other, found := b[name]; !found || !equals(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, isList := b.([]any)
		if !isList || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equals(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// isSame reports whether two values are the same map or list, or equal values of another type that JSON has.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, isMap := b.(map[string]any)
		return isMap && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, isList := b.([]any)
		return isList && len(a) == len(b) && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case float64: // a zero equals another of the other sign
		b, isFloat := b.(float64)
		return isFloat && math.Float64bits(a) == math.Float64bits(b)
	case string, int64, bool, nil:
		return a == b
	default:
		return false
	}
}

// mix combines two hashes.
func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 ^ b
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return x ^ x>>29
}
