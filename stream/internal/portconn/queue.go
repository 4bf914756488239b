package portconn

import "sync"

// chunkSize is the unit in which unread bytes are kept.
const chunkSize = 16 << 10

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// queue holds bytes in the order in which they came, in chunks that are reused once they are read.
type queue struct {
	held       []*[chunkSize]byte
	head, tail int // the first byte in the first chunk, the end in the last
	size       int
}

func (q *queue) write(p []byte) {
	q.size += len(p)
	for len(p) > 0 {
		if len(q.held) == 0 || q.tail == chunkSize {
			q.held, q.tail = append(q.held, chunks.Get().(*[chunkSize]byte)), 0
		}
		n := copy(q.held[len(q.held)-1][q.tail:], p)
		p, q.tail = p[n:], q.tail+n
	}
}

func (q *queue) read(p []byte) int {
	done := 0
	for done < len(p) && q.size > 0 {
		first := q.held[0][q.head:]
		n := copy(p[done:], first[:min(len(first), q.size)])
		done, q.head, q.size = done+n, q.head+n, q.size-n
		if q.head == chunkSize || q.size == 0 {
			chunks.Put(q.held[0])
			q.held[0], q.held, q.head = nil, q.held[1:], 0
		}
	}
	if q.size == 0 {
		q.held, q.tail = nil, 0
	}
	return done
}

// drop discards all and returns how much that was.
func (q *queue) drop() int {
	dropped := q.size
	for _, chunk := range q.held {
		chunks.Put(chunk)
	}
	*q = queue{}
	return dropped
}
