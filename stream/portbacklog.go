package stream

import "sync"

const (
	// ownBacklog is how much one connection may leave unread, at which its reader is behind: one that is alone on its
	// tunnel then makes its peer wait, as TCP does.
	ownBacklog = 256 << 10
	// sharedBacklog is how much all connections of a tunnel may leave unread while some of them are behind. Only
	// beyond that do they wait for one another: the peers know no flow control for each.
	sharedBacklog = 4 << 20
)

// backlog counts what has arrived over one socket and was not yet read. It is safe for concurrent use.
type backlog struct {
	room chan struct{} // has one when there may be room again

	mu    sync.Mutex
	total int
	conns int
}

func newBacklog() *backlog { return &backlog{room: make(chan struct{}, 1)} }

// joined counts connections that came, or that left where it is negative.
func (b *backlog) joined(conns int) {
	b.mu.Lock()
	b.conns += conns
	b.mu.Unlock()
	signal(b.room)
}

// grown counts bytes that arrived, or that were read where it is negative.
func (b *backlog) grown(bytes int) {
	b.mu.Lock()
	b.total += bytes
	b.mu.Unlock()
	if bytes < 0 {
		signal(b.room)
	}
}

// admits tells whether a connection that has left so much unread may be sent more.
func (b *backlog) admits(unread int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return unread < ownBacklog || b.conns > 1 && b.total < sharedBacklog
}

// chunkSize is the unit in which unread bytes are kept.
const chunkSize = 16 << 10

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// queue holds bytes in the order in which they came, in chunks that are handed back once they are read.
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

// drop forgets all and returns how much that was.
func (q *queue) drop() int {
	dropped := q.size
	for _, chunk := range q.held {
		chunks.Put(chunk)
	}
	*q = queue{}
	return dropped
}
