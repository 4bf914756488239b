//go:build unix

package cluster

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// relay relays the connections of an API server to etcd. It can delay etcd's responses and watch events.
type relay struct {
	listener net.Listener
	etcd     string // its host and port

	mu      sync.Mutex
	delay   time.Duration
	changed chan struct{} // closed by the next change of delay, and by close
	closed  bool
	conns   map[net.Conn]struct{}
	work    sync.WaitGroup
}

func newRelay(etcd string) (*relay, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for connections to etcd: %w", err)
	}
	r := &relay{listener: listener, etcd: etcd, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	r.work.Go(r.accept)
	return r, nil
}

func (r *relay) url() string { return "https://" + r.listener.Addr().String() }

// setDelay also changes the delay of data that the relay has received already.
func (r *relay) setDelay(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.delay = delay
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.delay = 0
	close(r.changed)
	for conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

func (r *relay) accept() {
	for {
		server, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.serve(server) })
	}
}

func (r *relay) serve(server net.Conn) {
	if !r.add(server) {
		return
	}
	defer r.remove(server)
	etcd, err := net.Dial("tcp", r.etcd)
	if err != nil || !r.add(etcd) {
		return
	}
	defer r.remove(etcd)
	r.work.Go(func() {
		_, _ = io.Copy(etcd, server)
		_ = etcd.Close()
	})
	r.copyDelayed(server, etcd)
}

// chunk is data received at a time.
type chunk struct {
	data []byte
	at   time.Time
}

// maxDelayed limits the chunks of a connection that wait for the end of their delay. Then etcd has to wait, too.
const maxDelayed = 1024

func (r *relay) copyDelayed(to, from net.Conn) {
	chunks := make(chan chunk, maxDelayed)
	r.work.Go(func() {
		defer close(chunks)
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			chunks <- chunk{slices.Clone(buffer[:n]), time.Now()}
			if err != nil {
				return
			}
		}
	})
	for c := range chunks {
		r.waitSince(c.at)
		if _, err := to.Write(c.data); err != nil {
			_ = from.Close()
		}
	}
}

// waitSince waits until the delay since then is over.
func (r *relay) waitSince(then time.Time) {
	for {
		r.mu.Lock()
		delay := r.delay
		changed := r.changed
		r.mu.Unlock()
		left := time.Until(then.Add(delay))
		if left <= 0 {
			return
		}
		select {
		case <-time.After(left):
		case <-changed:
		}
	}
}

// add returns false, and closes conn, once the relay is closed.
func (r *relay) add(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = conn.Close()
		return false
	}
	r.conns[conn] = struct{}{}
	return true
}

func (r *relay) remove(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
	_ = conn.Close()
}

// DelayEtcd delays etcd's responses and watch events to an API server, by its name in Status, so that its watch cache lags behind; 0
// ends the delay. It needs several API servers: a single one is connected to etcd directly.
func (c *Cluster) DelayEtcd(name string, delay time.Duration) error {
	m, err := c.member(name)
	if err != nil {
		return err
	}
	if m.relay == nil {
		return fmt.Errorf("delay etcd's responses to %s: the cluster has no relay between them, as it has for each API server if there are several (--api-servers)", name)
	}
	if delay < 0 {
		return fmt.Errorf("delay etcd's responses to %s by %s: negative", name, delay)
	}
	m.relay.setDelay(delay)
	return nil
}
