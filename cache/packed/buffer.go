package packed

import "sync"

// buffer is temporary memory of a call.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &buffer{} }}

// maxPooled limits the size of a pooled buffer, in bytes.
const maxPooled = 64 << 10

// borrowBuffer returns a buffer of the given size, with arbitrary content.
func borrowBuffer(size int) *buffer {
	b, _ := buffers.Get().(*buffer)
	if cap(b.bytes) < size {
		b.bytes = make([]byte, size)
	}
	b.bytes = b.bytes[:size]
	return b
}

func (b *buffer) release() {
	if cap(b.bytes) <= maxPooled {
		buffers.Put(b)
	}
}
