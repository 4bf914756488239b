package unstructured

import (
	"io"
	"sync"
)

// A reader turns JSON text into Go values in one pass. It holds to what sigs.k8s.io/json accepts and refuses. After
// an error it stands anywhere and is good for nothing but release. One goroutine at a time.
//
// It reads tokens itself: json-iterator's Iterator hands out field names and strings only freshly allocated, passes
// invalid UTF-8 through and reads some surrogates otherwise than the API server does (see
// TestIteratorReadsSomeTextOtherwise). At best it is about as fast, and it takes more memory (see BenchmarkDecode).
type reader struct {
	window
	depth int

	names  *interned       // of fields
	values *internedValues // strings that are values

	// Members and elements of the objects and lists being read, innermost last: a map or slice is made when its
	// size is known.
	members  []member
	elements []any
	scratch  []byte // the last string that had to be unquoted

	skipper skipper
	parts   *Parts // what is shared; nil for nothing

	objectStart int64 // the offset of the object being read
	lookedAhead int64 // bytes from there on that were looked at for a shared part in vain
}

type member struct {
	name  string
	value any
}

// maxDepth is how deep objects and lists may nest, as in encoding/json.
const maxDepth = 10000

// newReader reads from src in chunks of at least size bytes.
func newReader(src io.Reader, size int) *reader {
	r := &reader{window: window{src: src, buf: make([]byte, size)}, names: newInterned(internSlots), values: newInternedValues(internSlots)}
	r.names.together = true
	return r
}

var readers = sync.Pool{New: func() any { return newPooled() }}

func newPooled() *reader {
	r := &reader{names: newInterned(internSlots), values: newInternedValues(internFew)}
	r.values.together = true
	return r
}

// borrowReader reads from data. Give it back with release.
func borrowReader(data []byte) *reader {
	r, _ := readers.Get().(*reader)
	if r == nil {
		r = newPooled()
	}
	r.window = window{buf: data, end: len(data)}
	r.depth = 0
	return r
}

// maxKept is the size in elements beyond which a buffer is left to the garbage collector, not reused.
const maxKept = 4096

// release forgets everything but field names: values may be secret, and field names are what repeats.
func (r *reader) release() {
	r.window = window{}
	r.members, r.elements, r.scratch = reuse(r.members), reuse(r.elements), reuse(r.scratch)
	clear(r.scratch[:cap(r.scratch)])
	r.values.forget()
	readers.Put(r)
}

// reuse empties s. Behind its end is nothing to forget: objects and lists clear what they are done with.
func reuse[T any](s []T) []T {
	if cap(s) > maxKept {
		return nil
	}
	clear(s)
	return s[:0]
}
