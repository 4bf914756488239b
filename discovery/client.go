package discovery

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/transport"
)

// Client asks one server what it serves and keeps the latest answer. It is safe for concurrent use.
type Client struct {
	conn   *transport.Conn
	latest atomic.Pointer[Snapshot]
	// turn is held by whoever is asking the server.
	turn chan struct{}
}

// New makes a client that has not asked yet.
func New(conn *transport.Conn) *Client {
	return &Client{conn: conn, turn: make(chan struct{}, 1)}
}

// Snapshot returns the latest answer without asking again; the first call asks.
func (c *Client) Snapshot(ctx context.Context) (*Snapshot, error) {
	if latest := c.latest.Load(); latest != nil {
		return latest, nil
	}
	return c.Refresh(ctx)
}

// Refresh asks the server now. Calls that overlap share an answer, but never one that was asked for before the call:
// what the server served when Refresh was called is in what it returns. A group version that cannot be read does not
// fail the rest: see [Version].Err. A failure leaves the latest answer as it was.
func (c *Client) Refresh(ctx context.Context) (*Snapshot, error) {
	called := time.Now()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("discover what %s serves: %w", c.conn.Server(), context.Cause(ctx))
	}
	if latest := c.latest.Load(); latest != nil && latest.Taken.After(called) {
		return latest, nil
	}
	snapshot, err := fetch(ctx, c.conn)
	if err != nil {
		return nil, fmt.Errorf("discover what %s serves: %w", c.conn.Server(), err)
	}
	c.latest.Store(snapshot)
	return snapshot, nil
}
