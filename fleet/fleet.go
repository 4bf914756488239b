package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/listlimit"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// Options configure a fleet. nil and zero values mean the defaults.
type Options struct {
	// Sources add and remove the clusters, see [Contexts], [Folder], [ClusterAPI] and [Secrets].
	Sources []Source
	// Select reports whether a cluster belongs to this replica, see [Replica]. nil selects all clusters. [Fleet.SetSelect] changes it.
	Select func(cluster string) bool
	// Open opens the connection to a cluster when it is first used, and again after a change of its configuration. After an error, it
	// is called again at the next use, at most once a second. It must not send a request. nil means [transport.Open].
	Open func(cluster string, cfg *transport.Config) (*transport.Conn, error)
	// Logger receives failures of sources, and clusters that fail and recover; nil means slog.Default().
	Logger *slog.Logger
}

// Fleet is a changing set of clusters. It is safe for concurrent use.
type Fleet struct {
	opts    Options
	sources []*Clusters
	lists   *listlimit.Limit

	mu       sync.Mutex
	running  bool
	selects  func(string) bool
	clusters map[string]*cluster // all clusters of the sources
	claims   int                 // calls of Set and SetError
	changed  broadcast           // after each change of clusters, selects or sources
}

// New returns a fleet without clusters. Its sources start with [Fleet.Run].
func New(opts *Options) *Fleet {
	f := &Fleet{opts: *cmp.Or(opts, &Options{}), clusters: map[string]*cluster{}, lists: listlimit.New(maxLists)}
	f.selects = f.opts.Select
	f.opts.Logger = cmp.Or(f.opts.Logger, slog.Default())
	if f.opts.Open == nil {
		f.opts.Open = func(_ string, cfg *transport.Config) (*transport.Conn, error) { return transport.Open(cfg) }
	}
	for _, run := range f.opts.Sources {
		f.sources = append(f.sources, &Clusters{fleet: f, run: run, own: map[string]claim{}})
	}
	return f
}

// sourceBackoff is the delay before a failed source is called again. A call that has lasted longer than the maximum starts a new series of
// failures.
var sourceBackoff = retry.Backoff{Min: time.Second, Max: time.Minute}

// Run runs the sources until ctx ends, and returns ctx's error with its cause. A failed source is logged and called again. Its clusters
// stay meanwhile. A source that returns nil is not called again. It cannot be called twice at the same time. The clusters stay after
// the end of Run.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	isRunning := f.running
	f.running = true
	f.mu.Unlock()
	if isRunning {
		return errors.New("run a fleet: it runs already")
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running = false
	}()
	var all sync.WaitGroup
	for _, source := range f.sources {
		all.Go(func() { source.runUntil(ctx) })
	}
	<-ctx.Done()
	all.Wait()
	return fmt.Errorf("run a fleet: %w", retry.ContextError(ctx))
}

// SetSelect replaces Options.Select. Caches of the fleet connect to clusters that it selects in addition, and remove the objects of deselected
// clusters with changes of type cache.Removed.
func (f *Fleet) SetSelect(selects func(cluster string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.selects = selects
	for _, c := range f.clusters {
		if !f.isSelected(c.name) {
			c.remove()
			f.clusters[c.name] = newCluster(f, c.name, c.cfg, c.cfgErr)
		}
	}
	f.changed.notify()
}

// isSelected is called with f.mu.
func (f *Fleet) isSelected(name string) bool { return f.selects == nil || f.selects(name) }

// Names returns the names of the selected clusters, sorted.
func (f *Fleet) Names() []string { return slices.Sorted(maps.Keys(f.selected())) }

func (f *Fleet) selected() map[string]*cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	selected := make(map[string]*cluster, len(f.clusters))
	for name, c := range f.clusters {
		if f.isSelected(name) {
			selected[name] = c
		}
	}
	return selected
}

// Client returns the client of a cluster. It sends no request: the connection is dialed, and resources are discovered, when they are
// needed. After a change of the cluster's configuration, Client returns a new client. So call it in each reconcile.
func (f *Fleet) Client(name string) (*dynamic.Client, error) {
	for {
		c := f.selected()[name]
		if c == nil {
			return nil, fmt.Errorf("connect to cluster %q: not in the fleet", name)
		}
		if connected := c.connect(); connected != nil { // otherwise the cluster has been removed since
			return connected.client, connected.err
		}
	}
}

// Close closes the idle connections to all clusters. Call it after the end of Run and of the caches.
func (f *Fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.clusters {
		c.close()
	}
}

// Health returns nil if all sources have listed their clusters and none of them fails. The health of clusters is [Cache.Health].
func (f *Fleet) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failed []error
	for _, source := range f.sources {
		switch {
		case source.err != nil:
			failed = append(failed, fmt.Errorf("a source of clusters fails: %w", source.err))
		case !source.hasSynced:
			failed = append(failed, errors.New("a source of clusters has not synced"))
		}
	}
	return errors.Join(failed...)
}

// hasSynced reports whether all sources have listed their clusters, or have failed to.
func (f *Fleet) hasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.sources, func(s *Clusters) bool { return !s.hasSynced && s.err == nil })
}

// maxSpread bounds the random delay of connects and reconnects, and spreadPerCluster sets it: a thousand clusters behind a broken
// proxy reconnect within five seconds rather than at once. A TLS handshake takes some milliseconds of a processor.
const (
	spreadPerCluster = 5 * time.Millisecond
	maxSpread        = time.Minute
)

// spread waits for a random time that grows with the number of clusters.
func (f *Fleet) spread(ctx context.Context) error {
	return retry.Sleep(ctx, retry.Random(ctx, f.spreadLimit()))
}

func (f *Fleet) spreadLimit() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(time.Duration(max(len(f.clusters)-1, 0))*spreadPerCluster, maxSpread)
}

// maxLists is the number of concurrent initial lists. A connection buffers up to 4 MiB of a list. Clusters without a response fail
// before, in their discovery.
const maxLists = 16

// broadcast wakes its subscribers after a change. The zero value has none. It is safe for concurrent use.
type broadcast struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]struct{}
}

// subscribe returns a channel that receives after changes, and immediately.
func (b *broadcast) subscribe() (changed <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	subscriber := make(chan struct{}, 1)
	subscriber <- struct{}{}
	if b.subscribers == nil {
		b.subscribers = map[chan struct{}]struct{}{}
	}
	b.subscribers[subscriber] = struct{}{}
	return subscriber, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers, subscriber)
	}
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for subscriber := range b.subscribers {
		select {
		case subscriber <- struct{}{}:
		default:
		}
	}
}
