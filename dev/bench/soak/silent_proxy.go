//go:build unix

package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// silentProxy passes TCP connections on to the API server and can freeze them: bytes are dropped and connections stay open, like
// behind a firewall without their state.
type silentProxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	frozen bool
	open   map[*proxiedConn]struct{}
}

// proxiedConn is a connection from a client to the server.
type proxiedConn struct {
	client, server net.Conn
	mu             sync.Mutex
	silent         bool
}

func newSilentProxy(ctx context.Context, target string) (*silentProxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &silentProxy{listener: listener, target: target, open: map[*proxiedConn]struct{}{}}
	context.AfterFunc(ctx, func() { listener.Close() })
	go p.accept(ctx)
	return p, nil
}

func (p *silentProxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(ctx, client)
	}
}

func (p *silentProxy) pass(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	one := &proxiedConn{client: client, server: server}
	p.mu.Lock()
	p.open[one] = struct{}{}
	one.silent = p.frozen
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, one)
	}()
	ended := make(chan struct{}, 2)
	go func() { one.copy(server, client); ended <- struct{}{} }()
	go func() { one.copy(client, server); ended <- struct{}{} }()
	<-ended
}

// copy forwards a direction. Data of a frozen connection is dropped.
func (o *proxiedConn) copy(to io.Writer, from io.Reader) {
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		o.mu.Lock()
		silent := o.silent
		o.mu.Unlock()
		if !silent {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
			if err != nil {
				return
			}
		} else if err != nil {
			return
		}
	}
}

// freeze freezes every open connection for good, and new connections for a while.
func (p *silentProxy) freeze(ctx context.Context, length time.Duration) error {
	p.set(true)
	defer p.set(false)
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *silentProxy) set(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
	if !frozen {
		return
	}
	for one := range p.open {
		one.mu.Lock()
		one.silent = true
		one.mu.Unlock()
	}
}
