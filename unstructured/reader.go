package unstructured

import (
	"io"
	"sync"
)

// A reader turns JSON text into Go values in one pass. It holds to what sigs.k8s.io/json accepts and refuses. After
// an error it stands anywhere and must not be used again. One goroutine at a time.
//
// It reads tokens itself: json-iterator's Iterator hands out field names only as freshly allocated strings that no
// longer show whether the text was valid (raw control characters, null for a name, surrogates paired wrongly).
type reader struct {
	window
	depth int

	names  interned // of fields
	values interned // strings that are values

	// Members and elements of the objects and lists being read, innermost last: a map or slice is made when its
	// size is known.
	members  []member
	elements []any
	scratch  []byte // the last string that had to be unquoted
}

type member struct {
	name  string
	value any
}

// maxDepth is how deep objects and lists may nest, as in encoding/json.
const maxDepth = 10000

// newReader reads from src in chunks of at least size bytes.
func newReader(src io.Reader, size int) *reader {
	return &reader{window: window{src: src, buf: make([]byte, size)}}
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// borrowReader reads from data. Give it back with release.
func borrowReader(data []byte) *reader {
	r, _ := readers.Get().(*reader)
	if r == nil {
		r = new(reader)
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
	r.values.forget()
	r.members, r.elements, r.scratch = reuse(r.members), reuse(r.elements), reuse(r.scratch)
	readers.Put(r)
}

func reuse[T any](s []T) []T {
	if cap(s) > maxKept {
		return nil
	}
	clear(s[:cap(s)])
	return s[:0]
}
