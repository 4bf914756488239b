// Package jsonread reads JSON into Go values in one pass, straight off the wire. It accepts and rejects what
// sigs.k8s.io/json does: integers that fit become int64, other numbers float64, invalid UTF-8 U+FFFD; nesting ends at
// [MaxDepth].
//
// # Reading
//
// A [Reader] reads tokens from a buffer, over a []byte or an io.Reader. Members and elements are collected on two stacks,
// so that each map and slice is made when its size is known. [Reader.RawObject] skips an object instead: a scanner checks
// it, notes where the fields of general interest are ([FieldOffsets]) and leaves the JSON as it is. Where the input ends,
// the scanner remembers how far it came, so that no byte is scanned twice however the input comes.
//
// json-iterator's Iterator is not used: it allocates every field name and string, passes invalid UTF-8 through and
// reads some surrogates otherwise than the API server does. At best it is about as fast (BenchmarkDecode).
//
// # Strings
//
// Short strings come from a table of fixed size, so that "metadata", "Running" or "kube-system" is allocated once and not
// for every object. A Reader over a []byte is pooled and forgets values, which may be secret, but not field names.
//
// # Interning
//
// With an [Interner], equal maps and lists are made once. Two tables find them, both by JSON that is only scanned, at a
// fraction of the cost of decoding it:
//
//   - Of the JSON of any map or list, a hash is remembered; when it comes a second time, the value is kept by its JSON in
//     a generation, at most maxGenerationSize of memory or maxLookups lookups long. The generation before is kept, too, and
//     what is found there moves to the current one. Lookups are worth their cost for some fields and not for others: each
//     field name has a counter of hits, and one with few hits is probed probedOf256 times in 256 only.
//   - Of each object with a UID, the version that was read last is known for as long as somebody else holds it (a weak
//     pointer). Two hashes of the JSON, a digest, stand for each of its maps and lists of minDigested bytes or more, near
//     the root. A subtree of the next version with the digest of the one at the same path is the same Go value.
//
// Invariants: the hashes have random seeds, so that no server can make collisions. An object and its metadata are always
// new maps, since callers change kind and apiVersion; everything below may be shared and is read-only. An object with
// two members of one name is not remembered, since its digests are not those of what it holds. Scanning ahead in vain is
// limited to maxLookahead bytes for each byte of the object.
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
	part  part  // for which memory is counted
	left  int64 // that the rest of it may take

	names  *stringTable // of fields
	values *stringTable // strings that are values

	// Members and elements of the objects and lists being read, innermost last.
	members  []member
	elements []any
	scratch  []byte // the last string that had to be unquoted

	scanner  scanner
	interner *Interner // nil for none

	objectStart int64 // offset of the object being read
	lookahead   int64 // bytes from there on that were scanned for the interner in vain
}

type member struct {
	name  string
	value any
}

// MaxDepth is how deep objects and lists may nest, as in encoding/json.
const MaxDepth = 10000

// maxPooled is the size in elements beyond which a buffer is left to the garbage collector, not reused.
const maxPooled = 4096

// NewReader returns a Reader from src in chunks of at least size bytes. It interns if src is from [Interner.Source].
func NewReader(src io.Reader, size int) *Reader {
	r := &Reader{
		buffer: buffer{src: src, buf: make([]byte, size)},
		names:  newStringTable(tableSlots, true),
		values: newStringTable(tableSlots, false),
	}
	r.unlimit()
	if interned, ok := src.(*internedSource); ok {
		r.src = interned.Reader
		r.interner = interned.interner
	}
	return r
}

var pool sync.Pool

// Borrow returns a Reader of data from a pool. Give it back with Release.
func Borrow(data []byte) *Reader {
	r, _ := pool.Get().(*Reader)
	if r == nil {
		r = &Reader{names: newStringTable(tableSlots, true), values: newStringTable(pooledTableSlots, true)}
	}
	r.buffer = buffer{buf: data, end: len(data)}
	r.depth = 0
	r.unlimit()
	return r
}

// Release returns r to the pool without anything that it read but field names: values may be secret.
func (r *Reader) Release() {
	r.buffer = buffer{}
	r.members = emptied(r.members)
	r.elements = emptied(r.elements)
	r.scratch = emptied(r.scratch)
	clear(r.scratch[:cap(r.scratch)])
	r.values.forget()
	pool.Put(r)
}

// emptied returns s for reuse. Behind its end is nothing to clear: objects and lists clear what they are done with.
func emptied[T any](s []T) []T {
	if cap(s) > maxPooled {
		return nil
	}
	clear(s)
	return s[:0]
}

// Object reads an object, which must be next.
func (r *Reader) Object() (map[string]any, error) {
	if err := r.ObjectStart(); err != nil {
		return nil, err
	}
	return r.object(node{})
}

// ObjectStart reads up to the opening brace of an object, which must be next.
func (r *Reader) ObjectStart() error { return r.Expect('{', "where an object should begin") }

// StringBytes reads a string, which must be next, and unquotes it. The bytes are valid until the next read.
func (r *Reader) StringBytes() ([]byte, error) {
	if err := r.Expect('"', "where a string should begin"); err != nil {
		return nil, err
	}
	b, err := r.stringBytes(valueCost)
	if err == nil {
		err = r.checkLeft()
	}
	return b, err
}

// End reads to the end of the input, where nothing but white space may follow.
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
