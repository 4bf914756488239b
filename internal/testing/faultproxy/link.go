package faultproxy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Link is a TCP relay on loopback to a server. While it is cut, it keeps the bytes of both directions: connections neither fail nor
// deliver, and [Link.Restore] delivers all of it, also after the end of a connection.
type Link struct {
	listener net.Listener
	upstream string

	mu    sync.Mutex
	whole chan struct{} // closed while the link delivers
	ended bool
	conns map[net.Conn]struct{}
	work  sync.WaitGroup
}

// NewLink starts a relay to a host and port. It is closed when the test ends.
func NewLink(t testing.TB, upstream string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen on loopback: %v", err)
	}
	l := &Link{listener: listener, upstream: upstream, whole: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(l.whole)
	l.work.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

// Address returns the relay's host and port.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut stops the delivery in both directions. New connections are accepted, and do not get through either.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// Restore delivers what was kept, and all that follows. Cut and Restore are called alternately.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.whole)
}

func (l *Link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.work.Wait()
}

func (l *Link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() { l.serve(from) })
	}
}

func (l *Link) serve(from net.Conn) {
	if !l.add(from) {
		return
	}
	defer l.remove(from)
	l.wait()
	to, err := net.Dial("tcp", l.upstream)
	if err != nil || !l.add(to) {
		return
	}
	defer l.remove(to)
	var directions sync.WaitGroup
	directions.Go(func() { l.copy(from, to) })
	directions.Go(func() { l.copy(to, from) })
	directions.Wait()
}

// copy relays one direction, and its end.
func (l *Link) copy(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.wait()
		if _, failed := to.Write(buffer[:n]); failed != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if err != nil {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
	}
}

// wait waits until the link delivers.
func (l *Link) wait() {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	<-whole
}

func (l *Link) add(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = conn.Close()
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Link) remove(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	_ = conn.Close()
}
