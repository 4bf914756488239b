package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Source is where a cache reads from: a *dynamic.Resource, or a typed handle on one.
type Source[T any] interface {
	Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[T], error]
	Path(name string) (string, error)
}

// Object is what a cache must be able to ask of its objects. *unstructured.Object, *unstructured.Lazy and every struct
// that embeds metav1.ObjectMeta have it.
type Object[T any] interface {
	*T
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetLabels() map[string]string
}

// Options say what a cache holds and how it can be asked. nil means all objects of the source, as they are.
type Options[T any] struct {
	// LabelSelector and FieldSelector choose objects, as in metav1.ListOptions.
	LabelSelector, FieldSelector string
	// Indexes are ways to find objects with [Cache.By]: each gives the values under which an object is found.
	Indexes map[string]func(*T) []string
	// Transform changes each object before it is kept, to drop what nobody reads; it may return another, or nil for one
	// that the cache shall not have. It is asked about the last state of a deleted object, too, but not about one whose
	// deletion was not seen: then the last state is what the cache had. The object's UID must stay. With a Transform
	// objects do not share what is equal in them, so that it can change them; see dynamic.FollowOptions.Shared.
	Transform func(*T) *T
	// Resync is how often every object is told to each consumer again; 0 means never.
	Resync time.Duration
	// Interrupted hears of every break in the stream; see dynamic.FollowOptions.
	Interrupted func(dynamic.Interruption)
	// DetectMutations compares objects with what they were when they were stored, which costs memory and time: for tests.
	// If a reader has changed one, Run ends with a *[MutationError], at the latest when ctx ends. In a process with
	// ANYKIND_CACHE_MUTATION_DETECTOR=true in its environment every cache does so.
	DetectMutations bool
}

// Cache is a copy of what a source has. It is safe for concurrent use.
type Cache[T any] struct {
	source    Source[T]
	opts      Options[T]
	meta      func(*T) meta
	callee    callee               // of Run's goroutine alone
	mutations *mutationDetector[T] // nil for none

	mu        sync.RWMutex
	objects   map[Key]*entry[T]
	indexes   map[string]index[T]
	consumers map[*consumer[T]]struct{}
	version   version
	started   bool
	notServed bool
	lastErr   error // that interrupted the stream

	synced chan struct{} // closed at the first Synced
	ended  chan struct{} // closed when Run returns
	err    error         // of Run, once ended is closed
}

// Key names an object; Namespace is "" where it is cluster-scoped.
type Key struct{ Namespace, Name string }

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// New makes a cache. It is empty, and makes no request, until Run.
func New[T any, P Object[T]](source Source[T], opts *Options[T]) *Cache[T] {
	c := &Cache[T]{
		source: source, meta: metaOf[T, P],
		objects: map[Key]*entry[T]{}, indexes: map[string]index[T]{}, consumers: map[*consumer[T]]struct{}{},
		synced: make(chan struct{}), ended: make(chan struct{}),
	}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.DetectMutations || detectsMutations() {
		c.mutations = newMutationDetector[T]()
	}
	c.indexes[byNamespace] = index[T]{}
	for name := range c.opts.Indexes {
		c.indexes[name] = index[T]{}
	}
	return c
}

// Run fills the cache and keeps it true until ctx ends; it is called once. Its error is that of
// [dynamic.Resource.Follow]: ctx's, or that of a request that the server rejects at the start. While the server does not
// serve the resource the cache keeps what it has. Where one of the functions in Options
// panics, Run ends with a *[PanicError]: what was not indexed or transformed would be missing from then on.
func (c *Cache[T]) Run(ctx context.Context) (err error) {
	if err := c.begin(); err != nil {
		return err
	}
	err = fmt.Errorf("run the cache of %s: its goroutine was ended by runtime.Goexit", c.what())
	// Those who wait are told, however this ends.
	defer func() { c.end(err) }()
	defer c.contain(&err)
	return c.follow(ctx)
}

func (c *Cache[T]) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	close(c.ended)
	for each := range c.consumers {
		each.wake()
	}
}

func (c *Cache[T]) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return errors.New("run a cache: it runs already, or has run: make another with New")
	}
	c.started = true
	return nil
}

func (c *Cache[T]) follow(ctx context.Context) (err error) {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.opts.Resync > 0 {
		background.Go(func() { c.resync(ctx) })
	}
	defer func() { err = c.mutations.explain(c.what(), err) }()
	for change, err := range c.source.Follow(ctx, &dynamic.FollowOptions{
		LabelSelector: c.opts.LabelSelector, FieldSelector: c.opts.FieldSelector,
		Shared:   c.opts.Transform == nil, // which changes objects
		Progress: c.advance, Interrupted: c.interrupted,
	}) {
		if err != nil {
			return err
		}
		if c.take(change); c.mutations.hasFound() {
			break
		}
	}
	return fmt.Errorf("run the cache of %s: its source has ended without saying why", c.what())
}

func (c *Cache[T]) interrupted(i dynamic.Interruption) {
	c.mu.Lock()
	c.lastErr = i.Err
	c.mu.Unlock()
	if c.opts.Interrupted != nil {
		c.callee = callee{function: "Interrupted"}
		c.opts.Interrupted(i)
		c.callee = callee{}
	}
}

// take brings one change into the cache and to its consumers.
func (c *Cache[T]) take(change dynamic.Change[T]) {
	switch change.Type {
	case watch.Added, watch.Modified:
		key := c.meta(change.Object).key // which Transform may change
		if obj := c.transformed(key, change.Object); obj != nil {
			c.put(key, obj)
		} else {
			c.remove(key, nil, false)
		}
	case watch.Deleted:
		key, last := c.meta(change.Object).key, (*T)(nil)
		if !change.FinalStateUnknown {
			last = c.transformed(key, change.Object)
		}
		c.remove(key, last, change.FinalStateUnknown)
	case dynamic.Synced, dynamic.NotServed:
		c.setServed(change.Type)
	default: // the start of a list is of no interest
	}
}

func (c *Cache[T]) transformed(key Key, obj *T) *T {
	if c.opts.Transform == nil {
		return obj
	}
	c.callee = callee{function: "Transform", key: key}
	obj = c.opts.Transform(obj)
	c.callee = callee{}
	return obj
}

// Sync waits until the cache has all objects that there were when Run began. If Run ends before, it returns Run's error. If
// ctx ends before, its error is ctx's and names what kept the cache from it.
func (c *Cache[T]) Sync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-c.ended:
	case <-ctx.Done():
	}
	select { // what was whole once stays so, whatever else has happened meanwhile
	case <-c.synced:
		return nil
	default:
	}
	select {
	case <-c.ended:
		return c.err
	default:
		return c.notSynced(ctx)
	}
}

// notSynced is the error of a ctx that ended before the cache had synced.
func (c *Cache[T]) notSynced(ctx context.Context) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	err := fmt.Errorf("cache %s: not synced: %w", c.what(), retry.ContextError(ctx))
	switch {
	case !c.started:
		return fmt.Errorf("%w (Run has not been called)", err)
	case c.lastErr != nil:
		return fmt.Errorf("%w; the last error: %w", err, c.lastErr)
	default:
		return err
	}
}

// Wait waits until Run has ended and returns its error, or ctx's if that ends before.
func (c *Cache[T]) Wait(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("cache %s: not ended: %w", c.what(), retry.ContextError(ctx))
	}
}

// String returns the path of the cache's resource.
func (c *Cache[T]) String() string { return c.what() }

// what names the cache in errors.
func (c *Cache[T]) what() string {
	path, err := c.source.Path("")
	if err != nil {
		return err.Error()
	}
	return path
}
