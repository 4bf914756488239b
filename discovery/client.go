package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client asks one server what it serves and keeps the latest answer. It is safe for concurrent use.
type Client struct {
	conn *transport.Conn // nil where there is no server
	disk *diskCache      // nil for none
	// patience is how long a single group version may take to answer, and grace how long the others wait for it.
	patience, grace time.Duration
	maxDocument     int64

	// turn is held by whoever reads both roots; it guards the fields up to keptAt.
	turn    chan struct{}
	roots   map[string]*root
	checked time.Time
	kept    *Snapshot // that disk has
	keptAt  time.Time

	budget       requestBudget
	definitions  definitions
	capabilities atomic.Pointer[Capabilities]

	mu     sync.Mutex // guards the fields below
	latest *Snapshot
	// changed is closed when latest is replaced.
	changed chan struct{}
	// asked is when all groups were asked for last, and groupAsked when single ones were since.
	asked      time.Time
	groupAsked map[string]time.Time
	// rootsStale says that latest has what the roots in memory lack.
	rootsStale bool
	// unanswered holds the group versions that did not answer within patience, and when.
	unanswered map[schema.GroupVersion]time.Time
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
		conn: conn, turn: make(chan struct{}, 1), roots: map[string]*root{}, patience: versionPatience, grace: versionGrace,
		maxDocument: maxDocument,
		changed:     make(chan struct{}), groupAsked: map[string]time.Time{}, unanswered: map[schema.GroupVersion]time.Time{},
	}
	client.definitions.turn = make(chan struct{}, 1)
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

// Latest returns the latest answer without asking, nil before the first.
func (c *Client) Latest() *Snapshot {
	latest, _ := c.current()
	return latest
}

// Snapshot returns the latest answer without asking again; the first call asks, unless there is one to begin with.
func (c *Client) Snapshot(ctx context.Context) (*Snapshot, error) {
	if first := c.first(); first != nil {
		return first, nil
	}
	return c.Refresh(ctx)
}

// first returns the latest snapshot, or else the one in the cache on disk, or nil.
func (c *Client) first() *Snapshot {
	if latest := c.Latest(); latest != nil || c.disk == nil {
		return latest
	}
	cached, err := c.disk.read(time.Now())
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest == nil {
		c.latest = cached
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
// that cannot be read, or does not answer within ten seconds, does not fail the rest: see [Version].Err. A failure
// leaves the latest answer as it was.
func (c *Client) Refresh(ctx context.Context) (*Snapshot, error) {
	if c.conn == nil {
		return c.Latest(), nil
	}
	called := time.Now()
	snapshot, err := c.refresh(ctx, called, nil)
	if err != nil {
		return nil, err
	}
	late := lateVersions(snapshot, func(gv schema.GroupVersion) bool { return !c.unansweredSince(gv, called) })
	if len(late) == 0 {
		return snapshot, nil
	}
	return c.fetchLate(ctx, late)
}

// refresh asks for both roots and, where they do not tell all, for the group versions, of which those are not waited for
// that answer later than the others. It returns the latest snapshot instead if that was asked for after called. spend,
// unless it is nil, is called before the server is asked, and refuses that with false.
func (c *Client) refresh(ctx context.Context, called time.Time, spend func() (bool, error)) (*Snapshot, error) {
	if err := c.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer c.endTurn()
	latest := c.Latest()
	if latest != nil && c.checked.After(called) {
		return latest, nil
	}
	if spend != nil {
		if granted, err := spend(); err != nil || !granted {
			return latest, c.discoverError(ctx, err)
		}
	}
	asked := time.Now()
	next, err := c.fetch(ctx)
	if err != nil {
		return nil, c.discoverError(ctx, err)
	}
	c.checked = asked
	if next != nil {
		next.Taken = asked
		latest = c.publishWhole(next)
	}
	c.keep(latest, asked)
	return latest, nil
}

func (c *Client) discoverError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("discover what %s serves: %w", c.conn.Server(), retry.WithContextError(ctx, err))
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
		return c.discoverError(ctx, retry.ContextError(ctx))
	}
}

func (c *Client) endTurn() { <-c.turn }

// publishWhole makes next the latest snapshot, with those groups of the latest one that were asked for since.
func (c *Client) publishWhole(next *Snapshot) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = next.Taken
	for name, at := range c.groupAsked {
		if !at.After(next.Taken) {
			delete(c.groupAsked, name)
			continue
		}
		isName := func(g Group) bool { return g.Name == name }
		var newer *Group
		if i := slices.IndexFunc(c.latest.Groups, isName); i >= 0 {
			newer = &c.latest.Groups[i]
		}
		next.Groups = replaceGroup(next.Groups, name, newer)
	}
	return c.publish(next)
}

// amend replaces one group of the latest snapshot, by nil where the server does not serve it. It does nothing where
// something newer is known.
func (c *Client) amend(name string, asked time.Time, replacement func(latest *Group) *Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.After(asked) || c.groupAsked[name].After(asked) {
		return
	}
	next := &Snapshot{Taken: asked, Groups: copyGroups(c.latest.Groups), Aggregated: c.latest.Aggregated, Rejected: c.latest.Rejected}
	var latest *Group
	if i := slices.IndexFunc(next.Groups, func(g Group) bool { return g.Name == name }); i >= 0 {
		latest = &next.Groups[i]
	}
	next.Groups = replaceGroup(next.Groups, name, replacement(latest))
	c.groupAsked[name] = asked
	before := c.latest
	if c.publish(next) != before {
		// The root's own answer is older than this one: nothing may be built from it again.
		c.rootsStale = true
	}
}

func replaceGroup(groups []Group, name string, by *Group) []Group {
	at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == name })
	switch {
	case by == nil && at >= 0:
		return slices.Delete(groups, at, at+1)
	case by != nil && at >= 0:
		groups[at] = *by
	case by != nil:
		return append(groups, *by)
	}
	return groups
}

// publish makes next the latest snapshot, completed by what was known before. The caller has mu.
func (c *Client) publish(next *Snapshot) *Snapshot {
	if next = follow(c.latest, next); next == c.latest {
		return next
	}
	c.latest = next
	close(c.changed)
	c.changed = make(chan struct{})
	return next
}
