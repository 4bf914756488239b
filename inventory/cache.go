package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/listlimit"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// Cache is a local copy of the objects of all kinds: the objects that [List] yields with the same options, of resources that can be
// watched. It is safe for concurrent use.
//
// Each resource has a stream of its own. New definitions are followed, and a deleted definition is removed with its objects. If the
// preferred version of a resource changes, the objects of the previous version stay until the initial list of the new version is
// complete. A resource that cannot be listed or watched is retried with a growing delay of up to two minutes, and does not affect
// the remaining resources. Its last known objects stay. [Cache.Health] names it.
//
// Objects are packed with package cache/packed. Small kinds have dictionaries in common. Of each object the key, UID, resourceVersion, labels, owners and readiness are
// searched without unpacking it.
type Cache struct {
	// View serves queries from all objects. [Cache.For] returns the view of a user.
	*View

	client *dynamic.Client
	opts   ListOptions
	lists  *listlimit.Limit
	owners *cache.SharedIndex[unstructured.Lazy]
	// packSmall packs the objects of small kinds, with common dictionaries.
	packSmall func(*unstructured.Lazy) cache.Packed[unstructured.Lazy]

	consumers consumers
	users     userViews

	started   atomic.Bool
	refreshed atomic.Bool   // discovery is not older than Run
	stopped   chan struct{} // closed when Run returns
	err       error         // of Run, once stopped is closed

	denied chan struct{} // receives after a kind was denied

	mu           sync.RWMutex
	kinds        map[schema.GroupResource]*kind
	next         map[schema.GroupResource]*kind // the successors of kinds, in a new version or further namespaces, until they have synced
	searched     *searchedKinds                 // kinds
	unavailable  []*ResourceError               // group versions
	discoveryErr error                          // of the last request, or nil
	updated      bool                           // since discovery was refreshed
	changed      chan struct{}                  // closed and replaced after each change of the state of a kind
}

// NewCache returns an empty cache of the objects selected by opts. It sends no request before Run. ListOptions.Workers is the number
// of concurrent initial lists: a list that takes more than five seconds does not count. With ListOptions.Namespaces, each namespace
// of a resource has a stream of its own.
//
// Without them, a resource that the user may not list in all namespaces has a stream for each permitted namespace, as in [List]. Changed
// permissions and new namespaces are found within two minutes, or within a second for each namespace if there are more than 120.
// [Cache.Health] names the resource if a namespace is left out. A user who may not list the namespaces sets ListOptions.Namespaces.
func NewCache(client *dynamic.Client, opts *ListOptions) *Cache {
	c := &Cache{
		client: client.WithDefaults(&dynamic.Defaults{OnWarning: func(context.Context, string) {}}), opts: *cmp.Or(opts, &ListOptions{}),
		owners: cache.NewSharedIndex(indexOwner, cache.IndexByOwner[unstructured.Lazy]), packSmall: packed.New[unstructured.Lazy](),
		stopped: make(chan struct{}), denied: make(chan struct{}, 1), changed: make(chan struct{}), searched: newSearchedKinds(nil),
		kinds: map[schema.GroupResource]*kind{}, next: map[schema.GroupResource]*kind{},
	}
	c.View = &View{cache: c, client: c.client}
	filter := *cmp.Or(c.opts.Resources, &discovery.ResourceFilter{})
	filter.Verbs = append(slices.Clone(filter.Verbs), "watch")
	c.opts.Resources = &filter
	c.lists = listlimit.New(cmp.Or(c.opts.Workers, defaultWorkers))
	return c
}

// Run fills the cache and keeps it current until ctx ends. It can be called once. It keeps the discovery of the client current, too, see
// [discovery.Client.Run]. It returns ctx's error with its cause, or a *cache.UnpackError. All remaining errors are retried. The objects
// stay after the end of Run.
func (c *Cache) Run(parent context.Context) (err error) {
	if c.started.Swap(true) {
		return errors.New("run a cache of all kinds: it runs already, or has run (make another with NewCache)")
	}
	err = errors.New("its goroutine was ended by runtime.Goexit")
	defer func() { // also after a panic or Goexit
		c.err = err
		close(c.stopped)
	}()
	ctx, abort := context.WithCancelCause(parent)
	defer abort(nil)
	c.run(ctx, abort)
	if parent.Err() != nil {
		return fmt.Errorf("run a cache of all kinds: %w", retry.ContextError(parent))
	}
	return context.Cause(ctx)
}

const (
	// resyncInterval is the interval of checks for changes without an event, such as the recovery of a group.
	resyncInterval = 30 * time.Second
	// maxDiscoveryDelay bounds the delay between requests for discovery by a user who may not watch definitions.
	maxDiscoveryDelay = 30 * time.Second
)

// run starts and stops kinds as discovery changes, until ctx ends.
func (c *Cache) run(ctx context.Context, abort context.CancelCauseFunc) {
	var all sync.WaitGroup
	defer all.Wait()
	wake := make(chan struct{}, 1)
	notify := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	all.Go(func() {
		for range c.client.Discovery().Changes(ctx, nil) {
			notify()
		}
	})
	all.Go(func() { c.refresh(ctx, notify) })
	start := func(resource *discovery.Resource, namespaces []string) *kind {
		k := newKind(ctx, c, resource, namespaces)
		k.start(&all, abort)
		return k
	}
	all.Go(func() { c.followPermitted(ctx, start) })
	ticker := time.NewTicker(resyncInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		isRefreshed := c.refreshed.Load()
		if snapshot := c.client.Discovery().Latest(); snapshot != nil {
			c.update(snapshot, isRefreshed, func(resource *discovery.Resource) *kind { return start(resource, c.opts.Namespaces) })
		}
		select {
		case <-wake:
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// refresh keeps discovery current until ctx ends.
func (c *Cache) refresh(ctx context.Context, notify func()) {
	backoff := retry.Backoff{Min: time.Second, Max: maxDiscoveryDelay}
	for n := 1; ctx.Err() == nil; n++ {
		_, err := c.client.Discovery().Refresh(ctx)
		c.setDiscoveryError(err)
		delay := backoff.Delay(n)
		if err == nil {
			c.refreshed.Store(true)
			notify()
			_ = c.client.Discovery().Run(ctx) // returns if the user may not watch definitions
			delay = maxDiscoveryDelay
		}
		_ = retry.Sleep(ctx, retry.Jitter(ctx, delay))
	}
}

func (c *Cache) setDiscoveryError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discoveryErr = err
	c.notify()
}

// notify wakes the waiters. c.mu must be held.
func (c *Cache) notify() {
	c.consumers.addAll()
	close(c.changed)
	c.changed = make(chan struct{})
}

// update starts the kinds of new resources and stops the kinds of removed resources.
func (c *Cache) update(snapshot *discovery.Snapshot, isRefreshed bool, start func(*discovery.Resource) *kind) {
	selected := map[schema.GroupResource]bool{}
	resources := selectResources(snapshot, &c.opts)
	for _, resource := range resources {
		selected[resource.GVR.GroupResource()] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, k := range c.kinds {
		if !selected[name] {
			k.stop(cache.ErrRemoved)
			delete(c.kinds, name)
			c.replaceNext(name, nil)
		}
	}
	for rank, resource := range resources {
		name := resource.GVR.GroupResource()
		switch k := c.kinds[name]; {
		case k == nil:
			c.kinds[name] = start(resource)
		case k.isSame(resource) && k.fits(resource):
			k.resource = resource
			if next := c.next[name]; next != nil && !next.fits(resource) {
				c.replaceNext(name, nil)
			}
		case k.isSame(resource):
			if next := c.next[name]; next == nil || !next.fits(resource) {
				c.replaceNext(name, start(resource))
			}
		default: // a new definition with the same name
			k.stop(cache.ErrRemoved)
			c.replaceNext(name, nil)
			c.kinds[name] = start(resource)
		}
		c.kinds[name].rank = rank
	}
	c.searched = newSearchedKinds(c.kinds)
	c.unavailable = unavailableVersions(snapshot, c.opts.Resources)
	c.updated = c.updated || isRefreshed
	c.notify()
}

// hasStatus reports whether the readiness of a resource's objects depends on its subresource status.
func (c *Cache) hasStatus(resource *discovery.Resource) bool {
	_, found := resource.Subresource("status")
	return found && !c.opts.Metadata
}

// replaceNext replaces the successor of a kind. c.mu must be held.
func (c *Cache) replaceNext(name schema.GroupResource, next *kind) {
	if previous := c.next[name]; previous != nil {
		previous.stop(cache.ErrRemoved)
		delete(c.next, name)
	}
	if next != nil {
		c.next[name] = next
	}
}

// setSynced replaces the previous version of a kind after the initial list of its successor.
func (c *Cache) setSynced(k *kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := k.resource.GVR.GroupResource()
	if c.next[name] == k {
		k.rank = c.kinds[name].rank
		c.kinds[name].stop(cache.ErrRemoved)
		c.kinds[name] = k
		delete(c.next, name)
		c.searched = newSearchedKinds(c.kinds)
	}
	c.notify()
}

// WaitForSync waits until the cache has the objects that existed when Run was called. If resources cannot be listed, it returns an
// [*IncompleteError] once the rest has synced: a later call may succeed. It returns Run's error if Run ends first, and ctx's error if
// ctx ends first.
func (c *Cache) WaitForSync(ctx context.Context) error {
	for {
		c.mu.RLock()
		changed := c.changed
		isSettled := c.updated && c.isSettled()
		c.mu.RUnlock()
		if isSettled {
			return c.incomplete()
		}
		select {
		case <-changed:
		case <-c.stopped:
			return c.err
		case <-ctx.Done():
			return fmt.Errorf("cache of all kinds: not synced: %w", retry.ContextError(ctx))
		}
	}
}

func (c *Cache) isSettled() bool {
	for _, k := range c.kinds {
		if !k.isSettled() {
			return false
		}
	}
	for _, next := range c.next {
		if next.isLimited && !next.isSettled() {
			return false
		}
	}
	return true
}

// Health returns nil if the objects of all resources are current. Otherwise it returns the reason: Run has not been called or has ended,
// discovery fails, or some resources cannot be listed or watched (an [*IncompleteError]).
func (c *Cache) Health() error {
	select {
	case <-c.stopped:
		return fmt.Errorf("cache of all kinds: stopped: %w", c.err)
	default:
	}
	c.mu.RLock()
	discoveryErr := c.discoveryErr
	isSynced := c.updated && c.isSettled()
	c.mu.RUnlock()
	switch {
	case !c.started.Load():
		return errors.New("cache of all kinds: not synced: Run has not been called")
	case discoveryErr != nil:
		return fmt.Errorf("cache of all kinds: discovery: %w", discoveryErr)
	case !isSynced:
		return errors.New("cache of all kinds: not synced")
	default:
		return c.incomplete()
	}
}

// incomplete returns an error with the resources that fail, or nil. Resources that are no longer served are left out.
func (c *Cache) incomplete() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	failed := &IncompleteError{Resources: slices.Clone(c.unavailable)}
	for _, kinds := range []map[schema.GroupResource]*kind{c.kinds, c.next} {
		for _, k := range kinds {
			if err := k.failure(); err != nil && !apierrors.IsNotFound(err) {
				failed.Resources = append(failed.Resources, err)
			}
		}
	}
	if len(failed.Resources) == 0 {
		return nil
	}
	failed.sort()
	return failed
}
