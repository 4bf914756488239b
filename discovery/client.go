package discovery

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/transport"
)

// Client asks one server what it serves and keeps the latest answer. It is safe for concurrent use.
type Client struct {
	conn *transport.Conn
	// turn is held by whoever is asking the server; it guards roots and checked.
	turn    chan struct{}
	roots   map[string]*root
	checked time.Time
	// patience is how long a single group version may take to answer.
	patience time.Duration

	capabilities atomic.Pointer[Capabilities]

	mu     sync.Mutex
	latest *Snapshot
	// changed is closed when latest is replaced.
	changed chan struct{}
}

// New makes a client that has not asked yet.
func New(conn *transport.Conn) *Client {
	return &Client{
		conn: conn, turn: make(chan struct{}, 1), roots: map[string]*root{},
		patience: versionPatience, changed: make(chan struct{}),
	}
}

// Snapshot returns the latest answer without asking again; the first call asks.
func (c *Client) Snapshot(ctx context.Context) (*Snapshot, error) {
	if latest, _ := c.current(); latest != nil {
		return latest, nil
	}
	return c.Refresh(ctx)
}

// current is the latest snapshot, nil before the first, and what is closed when there is another.
func (c *Client) current() (*Snapshot, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest, c.changed
}

// Refresh asks the server now, and returns the same snapshot as before where nothing has changed: a server with
// aggregated discovery then answers two empty responses. Calls that overlap share an answer, but never one that was
// asked for before the call: what the server served when Refresh was called is in what it returns. A group version
// that cannot be read does not fail the rest: see [Version].Err. A failure leaves the latest answer as it was.
func (c *Client) Refresh(ctx context.Context) (*Snapshot, error) {
	called := time.Now()
	if err := c.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer c.endTurn()
	latest, _ := c.current()
	if latest != nil && c.checked.After(called) {
		return latest, nil
	}
	asked := time.Now()
	next, err := c.fetch(ctx)
	if err != nil {
		return nil, fmt.Errorf("discover what %s serves: %w", c.conn.Server(), err)
	}
	c.checked = asked
	if next == nil {
		return latest, nil
	}
	next.Taken = asked
	return c.publish(next), nil
}

func (c *Client) takeTurn(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("discover what %s serves: %w", c.conn.Server(), ctx.Err())
	}
}

func (c *Client) endTurn() { <-c.turn }

// publish makes next the latest snapshot, completed by what was known before. The caller has the turn.
func (c *Client) publish(next *Snapshot) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next = follow(c.latest, next); next == c.latest {
		return next
	}
	c.latest = next
	close(c.changed)
	c.changed = make(chan struct{})
	return next
}
