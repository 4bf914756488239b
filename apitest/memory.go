package apitest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// memoryHost is the URL host of a server with Options.InMemory.
const memoryHost = "apitest.internal"

// memoryListener accepts connections within the process. Both ends are a net.Pipe: it blocks durably in the sense of
// testing/synctest.
type memoryListener struct {
	mu      sync.Mutex
	current *memoryEnd
}

type memoryEnd struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemoryListener() *memoryListener { return &memoryListener{} }

// reopen returns a new listener. dial connects to it from now on.
func (l *memoryListener) reopen() net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = &memoryEnd{conns: make(chan net.Conn), closed: make(chan struct{})}
	return l.current
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	end := l.current
	l.mu.Unlock()
	client, server := net.Pipe()
	select {
	case end.conns <- server:
		return client, nil
	case <-end.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (e *memoryEnd) Accept() (net.Conn, error) {
	select {
	case conn := <-e.conns:
		return conn, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (e *memoryEnd) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// Addr implements net.Listener.
func (e *memoryEnd) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return memoryHost }
