package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/objectkey"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// Key is the key of an object of a cluster.
type Key struct {
	Cluster string
	types.NamespacedName
}

// String returns the cluster, the namespace if any, and the name, separated by slashes.
func (k Key) String() string { return k.Cluster + "/" + objectkey.Text(k.NamespacedName) }

// CacheOptions configure a cache. nil and zero values mean all objects, unchanged.
type CacheOptions[T any] struct {
	// Options are for the cache of each cluster. Its functions are shared: calls for several clusters are concurrent. With Pack,
	// all clusters share the dictionaries. Each stream that the server rejects is an interruption of its cluster, also with
	// Namespaces.
	cache.Options[T]
	// Handle returns the handle to follow, of a resource in all namespaces; nil means dynamic.As[T]. It is called for each cluster
	// and connection, for instance with [dynamic.Handle.Metadata] or [dynamic.Decode].
	Handle func(*dynamic.Resource) *dynamic.Handle[T]
}

// Cache is a local copy of the objects of a resource in all clusters of a fleet. It has a *cache.Cache for each cluster. It is safe for
// concurrent use.
type Cache[T any] struct {
	fleet    *Fleet
	resource string
	opts     CacheOptions[T]
	newCache func(source cache.Source[T], opts *cache.Options[T]) *cache.Cache[T]

	started atomic.Bool
	stopped chan struct{} // closed when Run returns
	err     error         // of Run, once stopped is closed

	mu       sync.RWMutex
	clusters map[string]*clusterCache[T]
	shard    shard.Selector
	settled  bool      // all clusters have synced or failed once; see Health
	changed  broadcast // after each change of clusters or of their states
}

// NewCache returns an empty cache of a resource, named as in [dynamic.Client.Resource]: "pods", "deployments.v1.apps". It sends no
// request before Run.
func NewCache[T any, P cache.Object[T]](f *Fleet, resource string, opts *CacheOptions[T]) *Cache[T] {
	c := &Cache[T]{
		fleet: f, resource: resource, opts: *cmp.Or(opts, &CacheOptions[T]{}), newCache: cache.New[T, P],
		stopped: make(chan struct{}), clusters: map[string]*clusterCache[T]{},
	}
	if c.opts.Handle == nil {
		c.opts.Handle = dynamic.As[T, unstructured.Object]
	}
	c.shard = c.opts.Shard
	return c
}

// Run fills the cache and keeps it current until ctx ends, while clusters are added, changed and removed. It can be called once. It
// returns ctx's error with its cause, or a *cache.PanicError, *cache.MutationError or *cache.UnpackError of the cache of a cluster. All
// remaining errors are states of their cluster, see [Cache.Clusters], and retried: clusters do not delay each other.
//
// The objects stay after the end of Run.
func (c *Cache[T]) Run(parent context.Context) (err error) {
	if c.started.Swap(true) {
		return fmt.Errorf("run a cache of %s: it runs already, or has run (make another with NewCache)", c.resource)
	}
	err = errors.New("its goroutine was ended by runtime.Goexit")
	defer func() { // also after a panic or Goexit
		c.err = err
		close(c.stopped)
	}()
	ctx, abort := context.WithCancelCause(parent)
	defer abort(nil)
	changed, stop := c.fleet.changed.subscribe()
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-changed:
			c.update(func(cluster *clusterCache[T]) {
				all.Go(func() {
					if err := cluster.run(ctx); err != nil {
						abort(err)
					}
				})
			})
		case <-ctx.Done():
			all.Wait()
			if parent.Err() != nil {
				return fmt.Errorf("run the cache of %s: %w", c.resource, retry.ContextError(parent))
			}
			return context.Cause(ctx)
		}
	}
}

// update adds and removes the caches of clusters.
func (c *Cache[T]) update(start func(*clusterCache[T])) {
	selected := c.fleet.selected()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, existing := range c.clusters {
		if selected[name] != existing.cluster { // its ctx has ended
			delete(c.clusters, name)
		}
	}
	for name, member := range selected {
		if c.clusters[name] != nil {
			continue
		}
		opts := c.opts.Options
		opts.Shard = c.shard
		added := newClusterCache(c, member, &opts)
		c.clusters[name] = added
		start(added)
	}
	c.changed.notify()
}

// SetShard changes the shard of the caches of all clusters, see [cache.Cache.SetShard].
func (c *Cache[T]) SetShard(selector shard.Selector) error {
	if c.opts.Shard.Field() == "" || selector.Field() != c.opts.Shard.Field() {
		return fmt.Errorf("set the shard of the cache of %s: by %q, but Options.Shard is by %q", c.resource, selector.Field(), c.opts.Shard.Field())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard = selector
	for _, cluster := range c.clusters {
		if err := cluster.cache.SetShard(selector); err != nil {
			return err
		}
	}
	return nil
}

// Cluster returns the cache of a cluster, for instance for its TrackWrites. The cache must not be run. It becomes empty when the cluster is
// removed.
func (c *Cache[T]) Cluster(name string) (objects *cache.Cache[T], found bool) {
	cluster := c.cluster(name)
	if cluster == nil {
		return nil, false
	}
	return cluster.cache, true
}

func (c *Cache[T]) cluster(name string) *clusterCache[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.clusters[name]
}

// all returns the caches of all clusters.
func (c *Cache[T]) all() []*clusterCache[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]*clusterCache[T], 0, len(c.clusters))
	for _, cluster := range c.clusters {
		all = append(all, cluster)
	}
	return all
}

// Get returns an object. key.Namespace is "" for a cluster-scoped object.
func (c *Cache[T]) Get(key Key) (obj *T, found bool) {
	cluster := c.cluster(key.Cluster)
	if cluster == nil {
		return nil, false
	}
	return cluster.cache.Get(key.Namespace, key.Name)
}

// List yields the objects in a namespace ("" for all namespaces) of all clusters that match selector (nil for all objects), with their
// clusters, in no order. The objects of each cluster are a consistent snapshot.
func (c *Cache[T]) List(namespace string, selector labels.Selector) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for _, cluster := range c.all() {
			for _, obj := range cluster.cache.List(namespace, selector) {
				if !yield(cluster.name, obj) {
					return
				}
			}
		}
	}
}

// ByIndex yields the objects of all clusters with a value in an index of Options.Indexes, in no order. The objects of each cluster are a
// consistent snapshot. An unknown index is an error.
func (c *Cache[T]) ByIndex(name, value string) (iter.Seq2[string, *T], error) {
	if _, found := c.opts.Indexes[name]; !found {
		return nil, fmt.Errorf("cache of %s: unknown index %q (add it to Options.Indexes)", c.resource, name)
	}
	return func(yield func(string, *T) bool) {
		for _, cluster := range c.all() {
			objects, _ := cluster.cache.ByIndex(name, value) // the index exists
			for _, obj := range objects {
				if !yield(cluster.name, obj) {
					return
				}
			}
		}
	}, nil
}
