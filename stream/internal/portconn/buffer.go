package portconn

import "sync"

const (
	// maxUnread limits the unread bytes of a connection before it lags. If the connection is alone on its tunnel, its peer then
	// waits, like in TCP.
	maxUnread = 256 << 10
	// maxSharedUnread limits the unread bytes of all connections of a tunnel while some lag. Connections wait for each other only
	// beyond it.
	maxSharedUnread = 4 << 20
	chunkSize       = 16 << 10 // the unit in which unread bytes are kept
)

// ReceiveBuffer accounts for the unread bytes received over a tunnel. It is safe for concurrent use.
type ReceiveBuffer struct {
	room chan struct{} // has an element when there may be room again

	mu    sync.Mutex
	total int
	conns int
}

// NewReceiveBuffer returns the buffer of a tunnel without connections.
func NewReceiveBuffer() *ReceiveBuffer { return &ReceiveBuffer{room: make(chan struct{}, 1)} }

// add adds connections and received bytes. Negative numbers remove connections and read bytes.
func (b *ReceiveBuffer) add(conns, bytes int) {
	b.mu.Lock()
	b.conns += conns
	b.total += bytes
	b.mu.Unlock()
	if conns != 0 || bytes < 0 {
		signal(b.room)
	}
}

// admits reports whether a connection with this many unread bytes may receive more.
func (b *ReceiveBuffer) admits(unread int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return unread < maxUnread || b.conns > 1 && b.total < maxSharedUnread
}

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// byteQueue is a first-in first-out queue of bytes in pooled chunks.
type byteQueue struct {
	held       []*[chunkSize]byte
	head, tail int // the first byte in the first chunk, and the end in the last chunk
	size       int
}

func (q *byteQueue) write(p []byte) {
	q.size += len(p)
	for len(p) > 0 {
		if len(q.held) == 0 || q.tail == chunkSize {
			q.held = append(q.held, chunks.Get().(*[chunkSize]byte))
			q.tail = 0
		}
		n := copy(q.held[len(q.held)-1][q.tail:], p)
		p = p[n:]
		q.tail = q.tail + n
	}
}

func (q *byteQueue) read(p []byte) int {
	done := 0
	for done < len(p) && q.size > 0 {
		first := q.held[0][q.head:]
		n := copy(p[done:], first[:min(len(first), q.size)])
		done = done + n
		q.head = q.head + n
		q.size = q.size - n
		if q.head == chunkSize || q.size == 0 {
			chunks.Put(q.held[0])
			q.held[0] = nil
			q.held = q.held[1:]
			q.head = 0
		}
	}
	if q.size == 0 {
		q.held = nil
		q.tail = 0
	}
	return done
}

// drop discards all bytes and returns their number.
func (q *byteQueue) drop() int {
	dropped := q.size
	for _, chunk := range q.held {
		chunks.Put(chunk)
	}
	*q = byteQueue{}
	return dropped
}
