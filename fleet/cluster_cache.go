package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// clusterCache is the cache of a cluster. One goroutine runs it and its stream.
type clusterCache[T any] struct {
	*cluster
	owner   *Cache[T]
	cache   *cache.Cache[T]
	objects atomic.Pointer[controller.Objects] // with the resource, once it is known

	mu        sync.Mutex
	since     time.Time // of the state
	failures  []failure // of interrupted streams, oldest first
	attempted bool      // the first connect has begun
	responded bool      // the server has accepted a request
}

// failure is the error of an interrupted stream.
type failure struct {
	stream *followState
	err    error
}

func newClusterCache[T any](owner *Cache[T], member *cluster, opts *cache.Options[T]) *clusterCache[T] {
	c := &clusterCache[T]{cluster: member, owner: owner, since: time.Now()}
	c.cache = owner.newCache(&stream[T]{cluster: c}, opts)
	c.objects.Store(&controller.Objects{Cluster: member.name, Cache: c.cache})
	return c
}

// run runs the cache until ctx ends or the cluster is removed. Its error is a defect of a callback, which ends the owner.
func (c *clusterCache[T]) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })() //nolint:contextcheck // two lifetimes
	err := c.cache.Run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// setFailure records the interruption of a stream.
func (c *clusterCache[T]) setFailure(of *followState, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.failures, func(f failure) bool { return f.stream == of })
	switch {
	case i >= 0:
		c.failures[i].err = err
		return
	case len(c.failures) == 0:
		c.since = time.Now()
		c.fleet.opts.Logger.Warn("a cluster fails", "cluster", c.name, "resource", c.owner.resource, "error", err)
	}
	c.failures = append(c.failures, failure{of, err})
	c.owner.changed.notify()
}

// setAttempted records the first connect.
func (c *clusterCache[T]) setAttempted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.attempted {
		c.attempted = true
		c.since = time.Now()
	}
}

// setResponded records a response of the server, before the initial list.
func (c *clusterCache[T]) setResponded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responded = true
}

// setResponse records progress of a stream.
func (c *clusterCache[T]) setResponse(of *followState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responded = true
	if c.forgetFailure(of) {
		c.fleet.opts.Logger.Info("a cluster has recovered", "cluster", c.name, "resource", c.owner.resource)
	}
}

// setStopped records the end of a stream, which does not fail any more. The server may not have responded.
func (c *clusterCache[T]) setStopped(of *followState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetFailure(of)
}

// forgetFailure reports whether the stream was the last that failed. It is called with c.mu.
func (c *clusterCache[T]) forgetFailure(of *followState) (isLast bool) {
	if len(c.failures) == 0 {
		return false
	}
	c.failures = slices.DeleteFunc(c.failures, func(f failure) bool { return f.stream == of })
	if len(c.failures) > 0 {
		return false
	}
	c.since = time.Now()
	c.owner.changed.notify()
	return true
}

// setSynced records the end of an initial list.
func (c *clusterCache[T]) setSynced() {
	if !c.cache.HasSynced() { // some namespaces are missing
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.owner.changed.notify()
}

// stream is the source of the cache of a cluster. A Follow lasts as long as the cluster: it connects, resolves the resource, follows it,
// and starts again after every error and every change of the configuration. It resumes at the last resourceVersion unless the server
// has changed.
type stream[T any] struct {
	cluster   *clusterCache[T]
	namespace string // "" for all
	followed  atomic.Pointer[dynamic.Handle[T]]
}

// HonorsKnownObjects declares that the stream behaves as a handle, see cache.Source.
func (*stream[T]) HonorsKnownObjects() {}

// Namespace returns the stream of a namespace, for Options.Namespaces.
func (s *stream[T]) Namespace(name string) cache.Source[T] {
	return &stream[T]{cluster: s.cluster, namespace: name}
}

// Path returns the resource and the cluster: the path is unknown before the discovery.
func (s *stream[T]) Path(string) (string, error) {
	return s.cluster.owner.resource + " of cluster " + s.cluster.name, nil
}

// streamBackoff is the delay before a failed stream starts again. A handle retries most errors itself, before.
var streamBackoff = retry.Backoff{Min: time.Second, Max: time.Minute}

// maxLookup bounds the discovery of a resource.
const maxLookup = 30 * time.Second

// ProbeSharding probes the server of the last connection, see [dynamic.Handle.ProbeSharding].
func (s *stream[T]) ProbeSharding(ctx context.Context) (isSharded bool, err error) {
	if handle := s.followed.Load(); handle != nil {
		return handle.ProbeSharding(ctx)
	}
	return false, errors.New("probe the shards of a cluster: not connected")
}

// followState is the state of a Follow over all its connections.
type followState struct {
	server          string // of the last connection
	resourceVersion string // up to which the cache has the changes; "" for none
	failures        int    // in a row
}

// errStopped reports that the consumer has left the loop.
var errStopped = errors.New("stopped")

// Follow implements cache.Source.
func (s *stream[T]) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[T], error] {
	return func(yield func(dynamic.Change[T], error) bool) {
		state := &followState{resourceVersion: opts.ResourceVersion}
		defer s.cluster.setStopped(state)
		err := s.cluster.fleet.spread(ctx)
		s.cluster.setAttempted()
		for err == nil {
			err = s.follow(ctx, state, opts, yield)
		}
		if !errors.Is(err, errStopped) {
			yield(dynamic.Change[T]{}, err)
		}
	}
}

// follow follows the resource over the current connection, and waits after an error. It returns an error once ctx has ended.
func (s *stream[T]) follow(ctx context.Context, state *followState, opts *dynamic.FollowOptions, yield func(dynamic.Change[T], error) bool) error {
	current := s.cluster.connect()
	if current == nil { // removed: ctx ends, too
		<-ctx.Done()
		return retry.ContextError(ctx)
	}
	connected, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(current.replaced, func() { cancel(errReplaced) })() //nolint:contextcheck // two lifetimes
	start := time.Now()
	err := s.followConnection(connected, current, state, opts, yield)
	if current.replaced.Err() != nil {
		current.close() // its stream was not idle before
	}
	switch {
	case errors.Is(err, errStopped):
		return err
	case ctx.Err() != nil:
		return retry.WithContextError(ctx, err)
	case connected.Err() != nil: // with a new configuration
		state.failures = 0
		return nil
	case time.Since(start) > streamBackoff.Max:
		state.failures = 0
	}
	state.failures++
	delay := streamBackoff.Delay(state.failures)
	s.cluster.setFailure(state, err)
	if opts.OnInterruption != nil {
		opts.OnInterruption(dynamic.Interruption{Err: err, Relist: state.resourceVersion == "", Delay: delay, Count: state.failures})
	}
	_ = retry.Sleep(connected, retry.Jitter(ctx, delay)+retry.Random(ctx, s.cluster.fleet.spreadLimit()))
	return retry.ContextError(ctx)
}

// followConnection follows the resource over a connection until an error or the end of ctx.
func (s *stream[T]) followConnection(
	ctx context.Context, current *connection, state *followState, opts *dynamic.FollowOptions, yield func(dynamic.Change[T], error) bool,
) error {
	handle, err := s.handle(ctx, current)
	if err != nil {
		return err
	}
	s.followed.Store(handle)
	s.cluster.setResponded()
	if state.server != "" && state.server != current.server { // it may be a different cluster
		state.resourceVersion = ""
	}
	state.server = current.server
	release := func() {}
	if state.resourceVersion == "" {
		if release, err = s.cluster.fleet.lists.Acquire(ctx); err != nil {
			return err
		}
	}
	defer release()
	for change, err := range handle.Follow(ctx, s.followOptions(ctx, state, opts)) {
		if err != nil {
			return err
		}
		if change.Type == dynamic.Started {
			state.resourceVersion = "" // unknown until OnProgress
			s.cluster.setResponse(state)
		}
		if !yield(change, nil) {
			return errStopped
		}
		if change.Type == dynamic.Synced {
			release()
			s.cluster.setSynced()
		}
	}
	return errors.New("the stream has ended")
}

// followOptions returns the options of a Follow that records its progress in state.
func (s *stream[T]) followOptions(ctx context.Context, state *followState, opts *dynamic.FollowOptions) *dynamic.FollowOptions {
	changed := *opts
	changed.ResourceVersion = state.resourceVersion
	changed.OnProgress = func(resourceVersion string) {
		state.resourceVersion = resourceVersion
		s.cluster.setResponse(state)
		if opts.OnProgress != nil {
			opts.OnProgress(resourceVersion)
		}
	}
	changed.OnInterruption = func(i dynamic.Interruption) {
		if i.Relist {
			state.resourceVersion = ""
		}
		if i.Err != nil {
			s.cluster.setFailure(state, i.Err)
		}
		if opts.OnInterruption != nil {
			opts.OnInterruption(i)
		}
		if i.Err != nil {
			_ = s.cluster.fleet.spread(ctx) // before the delay of the handle
		}
	}
	return &changed
}

// handle resolves the resource by a discovery that is dropped afterwards: the snapshot of a server takes more memory than the rest of an
// idle cluster.
func (s *stream[T]) handle(ctx context.Context, current *connection) (*dynamic.Handle[T], error) {
	if current.err != nil {
		return nil, current.err
	}
	ctx, cancel := context.WithTimeout(ctx, maxLookup)
	defer cancel()
	lookup, err := current.temporaryClient().Resource(ctx, s.cluster.owner.resource)
	if err != nil {
		return nil, fmt.Errorf("find %s in cluster %q: %w", s.cluster.owner.resource, s.cluster.name, err)
	}
	found := *lookup.APIResource() // a copy: the original is part of the snapshot
	resource := current.client.ForAPIResource(&found)
	s.cluster.objects.Store(&controller.Objects{Cluster: s.cluster.name, Cache: s.cluster.cache, Resource: resource})
	if s.namespace != "" {
		resource = resource.Namespace(s.namespace)
	} else {
		resource = resource.AllNamespaces()
	}
	return s.cluster.owner.opts.Handle(dynamic.As[unstructured.Object](resource)), nil
}
