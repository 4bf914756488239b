package discovery

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
)

// pipes are connections in memory: a server on them works where time stands still.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func newPipes() *pipes { return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connectPipes serves handle in memory until the test ends.
func connectPipes(t *testing.T, handle http.Handler) *transport.Conn {
	t.Helper()
	listener := newPipes()
	server := &http.Server{Handler: handle} //nolint:gosec // no network
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = server.Serve(listener) }()
	conn, err := transport.New("http://server.example", &http.Client{Transport: &http.Transport{DialContext: listener.dial}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); _ = server.Close(); <-stopped })
	return conn
}
