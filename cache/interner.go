package cache

import (
	"hash/maphash"
	"math"
	"reflect"
	"slices"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An interner shares equal maps and lists between full objects from a Transform, and between versions of one object. Objects
// without a Transform are interned by the decoder, see package internal/jsonread. A Transform may modify its argument, so its
// argument is decoded without sharing.
//
// An object is walked twice. The first walk hashes each map and list from the hashes of its content, and compares it with its
// counterpart in the previous version. The second walk goes from the root to the leaves: a known value replaces a node, and its
// content is skipped. The first time, only the hash of a value is remembered; the second time, the value is kept in a generation.
// A generation ends after maxGenerationSize bytes or maxLookups lookups. The previous generation is kept, too, and values found
// there move to the current generation.
//
// Invariants: values are compared, not only their hashes, whose seeds are random. Results of a Transform are never modified,
// because they may contain parts of other objects: a map or list with replaced content is copied. Values of non-JSON types are
// left alone, and so are the maps and lists around them.
//
// An interner is not safe for concurrent use.
type interner struct {
	seed          maphash.Seed
	recent, older map[uint64]any // by hash
	size          int            // estimated bytes of memory of recent
	lookups       int            // in recent
	seen          [][2]uint32    // hashes with a single occurrence, in one of few slots
	nodes         []node         // of the current object
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

// node is a map or list of an object. The nodes in it follow.
type node struct {
	digest
	value    any
	previous any    // its counterpart in the previous version
	name     string // its name in a map
	index    int    // its index in a list
	end      int    // index after its last descendant
	shared   any    // its replacement
}

// digest is the hash and the properties of a value.
type digest struct {
	hash      uint64
	size      int  // estimated bytes of memory, including shared values
	opaque    bool // is or contains a value of a non-JSON type
	unchanged bool // equals its counterpart
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

// Estimated bytes of memory of a map or list, of a member and of an element.
const containerSize, memberSize, elementSize = 64, 40, 16

// object returns obj, or an equal object with shared maps and lists. previous is the object's previous version, or nil.
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

// digestNode returns the digest of a map or list. It appends the map or list and its descendants to in.nodes.
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

// digestValue is digestNode for a value of any type.
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

// share returns the value of node i, or an equal map or list.
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

// copyOf returns a copy of node i with the replacements of its children. Each member is assigned once: an assignment to a full
// map of eight members doubles the map, even if the member exists.
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

// lookup returns the value with this hash, or nil.
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

// add keeps value, which equals node n, in the current generation.
func (in *interner) add(n node, value any) {
	if known, found := in.recent[n.hash]; !found || !isSame(known, value) {
		in.recent[n.hash] = value
		in.size += n.size
	}
}

// seenBefore reports whether a hash has been seen before, and remembers it.
func (in *interner) seenBefore(hash uint64) bool {
	slot := &in.seen[hash%seenSlots]
	rest := uint32(hash >> 32)
	if slot[0] == rest || slot[1] == rest {
		return true
	}
	slot[0], slot[1] = rest, slot[0]
	return false
}

// equals reports whether two values are equal and of JSON types.
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

// isSame reports whether two values are the same map or list, or equal scalars of a JSON type.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, isMap := b.(map[string]any)
		return isMap && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, isList := b.([]any)
		return isList && len(a) == len(b) && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case float64: // 0.0 == -0.0, but they differ in JSON
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
