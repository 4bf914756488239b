// Package jsonread decodes JSON into Go values in one pass, straight off the wire. It accepts the same JSON as sigs.k8s.io/json
// and returns the same values: int64 for integers in its range, float64 for any further number, and U+FFFD for invalid UTF-8.
// [MaxDepth] limits nesting.
//
// # Reading
//
// A [Reader] reads tokens from a buffer, over a []byte or an io.Reader. Members and elements are collected on two stacks, so each
// map and slice is allocated with its final size. [Reader.RawObject] skips an object instead: a scanner validates the JSON and
// notes the offsets of common fields ([FieldOffsets]). At the end of the buffered input the scanner saves its position, so no
// byte is scanned twice.
//
// json-iterator's Iterator is not used: it allocates every field name and string, accepts invalid UTF-8 and decodes some
// surrogates differently from the API server. At best it is about as fast (BenchmarkDecode).
//
// # Strings
//
// Short strings come from a table of fixed size: "metadata", "Running" or "kube-system" is allocated once and not for every
// object. A Reader over a []byte is pooled. The pool keeps field names, but no values, since values may be secret.
//
// # Interning
//
// With an [Interner], equal maps and lists are made once. Two tables find them by their scanned JSON, at a fraction of the cost
// of decoding:
//
//   - Generations find equal values of different objects. The first occurrence of a JSON map or list leaves a hash. The second
//     occurrence stores the value by its JSON in the current generation. A generation ends at maxGenerationSize of memory,
//     after maxLookups lookups or at maxGenerationAge. The previous generation is kept, too, and values found in it move to the
//     current generation.
//     Lookups are worth their cost for some fields only, so each field name has a hit counter. With few hits, only probedOf256 of
//     256 values are looked up.
//   - Previous versions find unchanged parts of one object. For each UID, a weak pointer refers to the last version read, until
//     the caller drops the object. Each large map and list near its root (minDigested bytes of JSON or more) has a digest: two
//     hashes of the JSON. If the next version has an equal digest at the same path, the subtree becomes the same Go value.
//
// Parts of a different encoding, Protobuf, are found in the same tables by their encoded text ([Interner.Part]).
//
// Invariants: The hashes have random seeds, so no server can cause collisions. An object and its metadata are always new maps,
// since callers change kind and apiVersion. Deeper values may be shared and are read-only. An object with a duplicate field name
// is not remembered, since its digests do not describe the decoded object. Scanning ahead in vain is limited to maxLookahead
// bytes for each byte of the object.
package jsonread

import (
	"fmt"
	"io"
	"sync"
)

// Reader reads JSON. After an error only Release may be called. One goroutine at a time.
type Reader struct {
	buffer
	depth int
	part  part  // between BeginPart and EndPart
	left  int64 // memory left within the limit

	names  *StringTable // field names
	values *StringTable // string values

	// members and elements are the stacks of the objects and lists being read, innermost last.
	members  []member
	elements []any
	scratch  []byte // the last unquoted string

	scanner  scanner
	interner *Interner // nil for none

	objectStart int64 // offset of the object being read
	lookahead   int64 // bytes scanned in vain for the interner since objectStart
}

type member struct {
	name  string
	value any
}

// MaxDepth is the maximum nesting of objects and lists, as in encoding/json.
const MaxDepth = 10000

// maxPooled is the maximum capacity of a pooled slice, in elements. Larger slices are left to the garbage collector.
const maxPooled = 4096

// NewReader returns a Reader of src with reads of at least size bytes. A src from [Interner.Source] enables interning.
func NewReader(src io.Reader, size int) *Reader {
	r := &Reader{
		buffer: buffer{src: src, buf: make([]byte, size)},
		names:  NewStringTable(TableSlots, true),
		values: NewStringTable(TableSlots, false),
	}
	r.unlimit()
	if interned, ok := src.(*internedSource); ok {
		r.src = interned.Reader
		r.interner = interned.interner
	}
	return r
}

var pool sync.Pool

// Borrow returns a Reader of data from a pool. Call Release to return it.
func Borrow(data []byte) *Reader {
	r, _ := pool.Get().(*Reader)
	if r == nil {
		r = &Reader{names: NewStringTable(TableSlots, true), values: NewStringTable(PooledTableSlots, true)}
	}
	r.buffer = buffer{buf: data, end: len(data)}
	r.depth = 0
	r.unlimit()
	return r
}

// Release returns r to the pool. It clears everything but field names, since values may be secret.
func (r *Reader) Release() {
	r.buffer = buffer{}
	r.interner = nil
	r.members = emptied(r.members)
	r.elements = emptied(r.elements)
	r.scratch = emptied(r.scratch)
	clear(r.scratch[:cap(r.scratch)])
	r.values.Forget()
	pool.Put(r)
}

// emptied returns s for reuse, or nil if it is large. Objects and lists have cleared the elements beyond its length.
func emptied[T any](s []T) []T {
	if cap(s) > maxPooled {
		return nil
	}
	clear(s)
	return s[:0]
}

// Object reads an object. Any different value is an error.
func (r *Reader) Object() (map[string]any, error) {
	if err := r.ObjectStart(); err != nil {
		return nil, err
	}
	return r.object(node{})
}

// ObjectStart skips white space before an object. Any different value is an error. The opening brace is not consumed.
func (r *Reader) ObjectStart() error { return r.Expect('{', "where an object should begin") }

// StringBytes reads and unquotes a string. Any different value is an error. The bytes are valid until the next read.
func (r *Reader) StringBytes() ([]byte, error) {
	if err := r.Expect('"', "where a string should begin"); err != nil {
		return nil, err
	}
	b, err := r.stringBytes(ValueCost)
	if err == nil {
		err = r.checkLeft()
	}
	return b, err
}

// End reads to the end of the input. Anything but white space is an error.
func (r *Reader) End() error {
	switch c, err := r.PeekStart(); err {
	case nil:
		return r.SyntaxError(c, "behind the object")
	case io.EOF:
		return nil
	default:
		return fmt.Errorf("reading JSON after byte %d: %w", r.Offset(), err)
	}
}
