package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// Client discovers the resources of a server and keeps the latest snapshot. It is safe for concurrent use.
type Client struct {
	conn *transport.Conn // nil offline
	disk *diskCache      // nil without Options.CacheDir
	// versionTimeout bounds the request for a group version. versionGrace is the minimum grace
	// period for slow versions.
	versionTimeout, versionGrace time.Duration
	maxDocument                  int64

	// rootsLock is held while both roots are fetched. It guards the fields up to savedAt.
	rootsLock contextMutex
	roots     map[string]*root
	checkedAt time.Time // the last request for both roots
	saved     *Snapshot // the snapshot in the disk cache
	savedAt   time.Time
	// rootsStale reports that latest is newer than roots. The next refresh fetches both roots without ETags.
	rootsStale atomic.Bool

	limiter     retry.Bucket
	definitions definitionList

	mu     sync.Mutex // guards the fields below
	latest *Snapshot
	// changed is closed when latest is replaced.
	changed chan struct{}
	// requestedAt is the time of the last request for all groups. groupRequestedAt holds later requests for single groups.
	requestedAt      time.Time
	groupRequestedAt map[string]time.Time
	// invalidatedAt is the time of the last Invalidate call. It is zero once all groups have been requested after the call.
	invalidatedAt time.Time
	// timedOut maps each group version without a response within versionTimeout to the time of its timeout.
	timedOut map[schema.GroupVersion]time.Time
}

// Options configure a client's first snapshot.
type Options struct {
	// CacheDir is the root of a discovery cache shared with kubectl, such as [DefaultCacheDir]. A cache younger than six hours
	// provides the first snapshot. Every response of the server is written to the cache. Cache errors are ignored.
	CacheDir string
	// Snapshot is the first snapshot, for example from [Load]. It may be nil.
	Snapshot *Snapshot
}

// New returns a client. It sends no request. nil opts mean defaults.
func New(conn *transport.Conn, opts *Options) *Client {
	opts = cmp.Or(opts, &Options{})
	client := &Client{
		conn: conn, latest: opts.Snapshot, versionTimeout: defaultVersionTimeout, versionGrace: defaultVersionGrace, maxDocument: maxDocument,
		limiter:   retry.Bucket{Burst: limiterBurst, Interval: limiterInterval},
		rootsLock: make(contextMutex, 1), roots: map[string]*root{}, definitions: definitionList{lock: make(contextMutex, 1)},
		changed: make(chan struct{}), groupRequestedAt: map[string]time.Time{}, timedOut: map[schema.GroupVersion]time.Time{},
	}
	if opts.CacheDir != "" {
		client.disk = newDiskCache(opts.CacheDir, conn.Server())
	}
	return client
}

// NewOffline returns a client without a server. Snapshot and Refresh return the given snapshot. Methods with a request fail.
func NewOffline(snapshot *Snapshot) *Client { return New(nil, &Options{Snapshot: snapshot}) }

var errOffline = errors.New("no server: the client was made with NewOffline")

// Latest returns the latest snapshot without a request. It returns nil before the first snapshot.
func (c *Client) Latest() *Snapshot {
	latest, _ := c.latestAndChanged()
	return latest
}

// Invalidate marks the latest snapshot as stale, for example after a 404 for a resource. The next search refreshes first.
func (c *Client) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidatedAt = time.Now()
}

// Fresh reports whether all groups were requested since the last call of [Client.Invalidate].
func (c *Client) Fresh() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invalidatedAt.IsZero()
}

// setChecked records a request for all groups.
func (c *Client) setChecked(requestedAt time.Time) {
	c.checkedAt = requestedAt
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.invalidatedAt.After(requestedAt) {
		c.invalidatedAt = time.Time{}
	}
}

// latestAndChanged returns the latest snapshot and a channel, closed when the next snapshot is published.
func (c *Client) latestAndChanged() (*Snapshot, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest, c.changed
}

// Snapshot returns the latest snapshot. If there is none, in memory or in the disk cache, it calls [Client.Refresh].
func (c *Client) Snapshot(ctx context.Context) (*Snapshot, error) {
	if snapshot := c.latestOrCached(); snapshot != nil {
		return snapshot, nil
	}
	return c.Refresh(ctx)
}

// latestOrCached returns the latest snapshot, falling back to the disk cache. It returns nil if both are empty.
func (c *Client) latestOrCached() *Snapshot {
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
		c.publish(cached)
	}
	return c.latest
}

// Refresh requests a snapshot now. If nothing has changed, it returns the previous snapshot (the same pointer). With aggregated
// discovery an unchanged server returns two empty responses.
//
// Overlapping calls share a request only if it was sent after the call: the result is never older than the call. An unreadable
// group version, or a version without a response within ten seconds, fails alone: see [Version].Err. An error leaves the latest
// snapshot unchanged.
func (c *Client) Refresh(ctx context.Context) (*Snapshot, error) {
	if c.conn == nil {
		return c.Latest(), nil
	}
	called := time.Now()
	snapshot, err := c.refreshRoots(ctx, called, func() (bool, error) { return true, nil })
	if err != nil {
		return nil, err
	}
	return c.fetchLate(ctx, snapshot, func(gv schema.GroupVersion) bool { return !c.timedOutSince(gv, called) })
}

// refreshRoots fetches both roots and, without aggregated discovery, the group versions. It does not wait for late versions. It
// returns the latest snapshot if both roots were requested after called, or if allow returns false.
func (c *Client) refreshRoots(ctx context.Context, called time.Time, allow func() (bool, error)) (*Snapshot, error) {
	if err := c.rootsLock.lock(ctx); err != nil {
		return nil, c.discoveryError(ctx, err)
	}
	defer c.rootsLock.unlock()
	latest := c.Latest()
	if latest != nil && c.checkedAt.After(called) {
		return latest, nil
	}
	if allowed, err := allow(); err != nil || !allowed {
		return latest, c.discoveryError(ctx, err)
	}
	requestedAt := time.Now()
	next, err := c.fetch(ctx)
	if err != nil {
		return nil, c.discoveryError(ctx, err)
	}
	c.setChecked(requestedAt)
	if next != nil {
		next.TakenAt = requestedAt
		latest = c.publishAll(next)
	}
	c.saveToDisk(latest, requestedAt)
	return latest, nil
}

// discoveryError adds the server's URL to err. It returns nil for nil.
func (c *Client) discoveryError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("discover resources of %s: %w", c.conn.Server(), retry.WithContextError(ctx, err))
}

// saveToDisk writes a changed snapshot to the disk cache. An unchanged snapshot is rewritten after maxDiskAge/6, because
// cache files expire. Errors are ignored: discovery works without a cache. The caller holds rootsLock.
func (c *Client) saveToDisk(snapshot *Snapshot, requestedAt time.Time) {
	if c.disk == nil || snapshot == c.saved && requestedAt.Sub(c.savedAt) < maxDiskAge/6 {
		return
	}
	if c.disk.write(snapshot, requestedAt) == nil {
		c.saved = snapshot
		c.savedAt = requestedAt
	}
}

// contextMutex is a mutex whose lock method takes a context. It is a channel of capacity 1.
type contextMutex chan struct{}

func (m contextMutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return retry.ContextError(ctx)
	}
}

func (m contextMutex) unlock() { <-m }
