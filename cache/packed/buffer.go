package packed

import "sync"

// buffer is memory for the time of a call.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &buffer{} }}

// maxPooled is the size above which a buffer is not kept for other calls.
const maxPooled = 64 << 10

// borrowBuffer returns a buffer of that size, with any content.
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
