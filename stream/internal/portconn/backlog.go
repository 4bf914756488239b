package portconn

import "sync"

const (
	// ownBacklog is how much one connection may leave unread before it is behind: one that is alone on its tunnel then
	// makes its peer wait, as TCP does.
	ownBacklog = 256 << 10
	// sharedBacklog is how much all connections of a tunnel may leave unread while some are behind. Only beyond that do
	// they wait for one another.
	sharedBacklog = 4 << 20
)

// Backlog counts what has arrived over one tunnel and was not yet read. It is safe for concurrent use.
type Backlog struct {
	room chan struct{} // has one when there may be room again

	mu    sync.Mutex
	total int
	conns int
}

// NewBacklog returns the backlog of a tunnel without connections.
func NewBacklog() *Backlog { return &Backlog{room: make(chan struct{}, 1)} }

// join counts connections that came, or that left if it is negative.
func (b *Backlog) join(conns int) {
	b.mu.Lock()
	b.conns += conns
	b.mu.Unlock()
	signal(b.room)
}

// grow counts bytes that arrived, or that were read if it is negative.
func (b *Backlog) grow(bytes int) {
	b.mu.Lock()
	b.total += bytes
	b.mu.Unlock()
	if bytes < 0 {
		signal(b.room)
	}
}

// admits reports whether a connection that has left so much unread may be sent more.
func (b *Backlog) admits(unread int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return unread < ownBacklog || b.conns > 1 && b.total < sharedBacklog
}
