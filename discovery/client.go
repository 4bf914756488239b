package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client discovers the resources of one server and keeps the latest snapshot. It is safe for concurrent use.
type Client struct {
	conn *transport.Conn // nil offline
	disk *diskCache      // nil for none
	// versionTimeout bounds the request for one group version, and versionGrace how long the others wait for it.
	versionTimeout, versionGrace time.Duration
	maxDocument                  int64

	// rootsLock is held while both roots are fetched; it guards the fields up to savedAt.
	rootsLock contextMutex
	roots     map[string]*root
	checkedAt time.Time // when both roots were requested last
	saved     *Snapshot // that disk has
	savedAt   time.Time
	// rootsStale reports that latest is newer than the roots, which must be fetched as a whole again.
	rootsStale atomic.Bool

	limiter      retry.Bucket
	definitions  definitionList
	capabilities atomic.Pointer[Capabilities]

	mu     sync.Mutex // guards the fields below
	latest *Snapshot
	// changed is closed when latest is replaced.
	changed chan struct{}
	// requestedAt is the time at which all groups of latest were requested; groupRequestedAt has later requests of single ones.
	requestedAt      time.Time
	groupRequestedAt map[string]time.Time
	// invalidatedAt is the time of a call of Invalidate since which not all groups were requested.
	invalidatedAt time.Time
	// timedOut holds the group versions that did not answer within versionTimeout, and when.
	timedOut map[schema.GroupVersion]time.Time
}

// Options configure a client's first snapshot.
type Options struct {
	// CacheDir is the folder of a cache shared with kubectl, such as [DefaultCacheDir]: if its content is younger than six
	// hours it is the first snapshot, and every answer of the server is written to it. A cache that cannot be read or
	// written is ignored.
	CacheDir string
	// Snapshot, unless it is nil, is the first snapshot, such as one that [Load] has read.
	Snapshot *Snapshot
}

// New returns a client without sending a request. nil opts mean defaults.
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

// NewOffline returns a client without a server: Snapshot and Refresh return the given snapshot, and whatever needs a server
// fails.
func NewOffline(snapshot *Snapshot) *Client { return New(nil, &Options{Snapshot: snapshot}) }

var errOffline = errors.New("no server: the client was made with NewOffline")

// Latest returns the latest snapshot without a request, nil before the first.
func (c *Client) Latest() *Snapshot {
	latest, _ := c.latestAndChanged()
	return latest
}

// Invalidate reports that the server may serve something else than the latest snapshot has, such as after a 404 for a
// resource. The next search refreshes first.
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

// setChecked records that all groups were requested at a time.
func (c *Client) setChecked(requestedAt time.Time) {
	c.checkedAt = requestedAt
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.invalidatedAt.After(requestedAt) {
		c.invalidatedAt = time.Time{}
	}
}

// latestAndChanged also returns a channel that is closed when there is a later snapshot.
func (c *Client) latestAndChanged() (*Snapshot, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest, c.changed
}

// Snapshot returns the latest snapshot; only the first call sends requests, unless there is a snapshot to start from.
func (c *Client) Snapshot(ctx context.Context) (*Snapshot, error) {
	if snapshot := c.latestOrCached(); snapshot != nil {
		return snapshot, nil
	}
	return c.Refresh(ctx)
}

// latestOrCached returns the latest snapshot, or else the one in the cache on disk, or nil.
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
		c.latest = cached
	}
	return c.latest
}

// Refresh requests a snapshot now, and returns the same one as before if nothing has changed: a server with aggregated
// discovery then returns two empty responses. Overlapping calls share an answer, but only one that was requested after the
// call: what the server served when Refresh was called is in its result. A group version that cannot be read, or does not
// answer within ten seconds, does not fail the others: see [Version].Err. An error leaves the latest snapshot as it was.
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

// refreshRoots fetches both roots and, without aggregated discovery, the group versions, of which late ones are not awaited.
// It returns the latest snapshot if that was requested after called, or if allow returns false.
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

// discoveryError adds the server to an error; nil stays nil.
func (c *Client) discoveryError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("discover resources of %s: %w", c.conn.Server(), retry.WithContextError(ctx, err))
}

// saveToDisk updates the cache, now and then also without changes, because its files expire. Errors are ignored: discovery
// works without a cache. The caller holds rootsLock.
func (c *Client) saveToDisk(snapshot *Snapshot, requestedAt time.Time) {
	if c.disk == nil || snapshot == c.saved && requestedAt.Sub(c.savedAt) < maxDiskAge/6 {
		return
	}
	if c.disk.write(snapshot, requestedAt) == nil {
		c.saved, c.savedAt = snapshot, requestedAt
	}
}

// contextMutex is a mutex for which a context can stop waiting: a channel with room for one element.
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
