package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/transport"
)

// Client asks one server what it serves and keeps the latest answer. It is safe for concurrent use.
type Client struct {
	conn *transport.Conn // nil where there is no server
	disk *diskCache      // nil for none
	// turn is held by whoever is asking the server; it guards the four below.
	turn    chan struct{}
	roots   map[string]*root
	checked time.Time
	kept    *Snapshot // that disk has
	keptAt  time.Time
	// patience is how long a single group version may take to answer.
	patience time.Duration

	capabilities atomic.Pointer[Capabilities]

	mu     sync.Mutex
	latest *Snapshot
	// changed is closed when latest is replaced.
	changed chan struct{}
}

// Options say what a client begins with. The zero value is nothing.
type Options struct {
	// CacheDir is a folder of kubectl's, as [DefaultCacheDir] names it, for a cache that is shared with kubectl: what it
	// holds and is younger than six hours is the first snapshot, and what the server says is written to it. A cache
	// that cannot be read or written counts as none.
	CacheDir string
	// Snapshot, where it is not nil, is the first snapshot, such as one that [Load] has read.
	Snapshot *Snapshot
}

// New makes a client that has not asked yet. nil opts mean defaults.
func New(conn *transport.Conn, opts *Options) *Client {
	client := &Client{
		conn: conn, turn: make(chan struct{}, 1), roots: map[string]*root{},
		patience: versionPatience, changed: make(chan struct{}),
	}
	if opts != nil {
		client.latest = opts.Snapshot
		if opts.CacheDir != "" {
			client.disk = newDiskCache(opts.CacheDir, conn.Server())
		}
	}
	return client
}

// Offline makes a client of what a server served once. It asks nobody: Refresh returns the same snapshot, and what else
// needs a server fails.
func Offline(snapshot *Snapshot) *Client { return New(nil, &Options{Snapshot: snapshot}) }

var errOffline = errors.New("there is no server to ask: the client was made with Offline")

// Snapshot returns the latest answer without asking again; the first call asks, unless there is one to begin with.
func (c *Client) Snapshot(ctx context.Context) (*Snapshot, error) {
	if latest, _ := c.current(); latest != nil {
		return latest, nil
	}
	if c.disk != nil {
		if cached, err := c.disk.read(time.Now()); err == nil {
			return c.beginWith(cached), nil
		}
	}
	return c.Refresh(ctx)
}

// beginWith makes a snapshot the first one, unless somebody else was faster.
func (c *Client) beginWith(first *Snapshot) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest == nil {
		c.latest = first
	}
	return c.latest
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
	if c.conn == nil {
		latest, _ := c.current()
		return latest, nil
	}
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
	if next != nil {
		next.Taken = asked
		latest = c.publish(next)
	}
	c.keep(latest, asked)
	return latest, nil
}

// keep writes what the server said to the cache, at times also when it said nothing new: the cache expires. That it
// cannot be written is no harm to who asked. The caller has the turn.
func (c *Client) keep(snapshot *Snapshot, asked time.Time) {
	if c.disk == nil || snapshot == c.kept && asked.Sub(c.keptAt) < diskCacheLife/6 {
		return
	}
	if c.disk.write(snapshot, asked) == nil {
		c.kept, c.keptAt = snapshot, asked
	}
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
