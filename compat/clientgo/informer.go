package clientgo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	anykind "github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

type (
	object      = unstructured.Unstructured
	objectCache = anykind.Cache[object]
)

// minRetryDelay and maxRetryDelay bound the time before a cache is made anew after the server has rejected its first list.
const (
	minRetryDelay = 800 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// informer implements cache.SharedIndexInformer over a cache, which it makes when it runs. If the server rejects the first list,
// such as for a missing right, the cache ends, and the informer makes another, as client-go tries again.
type informer struct {
	resource  *dynamic.Resource
	name      string
	selectors metav1.ListOptions
	resync    time.Duration
	reflector *cache.Reflector // for watch error handlers, which expect one
	synced    *doneChecker
	version   atomic.Pointer[string]
	indexer   *indexer

	mu           sync.Mutex
	started      bool
	stopped      bool
	ctx          context.Context //nolint:containedctx // of Run, for handlers that are added later
	transform    cache.TransformFunc
	onWatchError cache.WatchErrorHandlerWithContext
	handlers     map[*registration]struct{}
	running      sync.WaitGroup
	minResync    time.Duration
	// current is the cache, and replaced is closed when it is not any more.
	current  *objectCache
	replaced chan struct{}
}

func newInformer(resource *dynamic.Resource, name string, resync time.Duration, selectors *metav1.ListOptions) *informer {
	i := &informer{
		resource: resource, name: name, selectors: *selectors, resync: resync, minResync: resync,
		reflector: cache.NewReflectorWithOptions(nil, &object{}, nil, cache.ReflectorOptions{Name: name, TypeDescription: name}),
		synced:    newDoneChecker(name), onWatchError: cache.DefaultWatchErrorHandler,
		handlers: map[*registration]struct{}{}, replaced: make(chan struct{}),
	}
	i.indexer = newIndexer(i)
	return i
}

// Run implements cache.SharedInformer.
func (i *informer) Run(stop <-chan struct{}) {
	ctx, cancel := contextOf(stop)
	defer cancel()
	i.RunWithContext(ctx)
}

// RunWithContext implements cache.SharedInformer. It returns when ctx has ended and all handlers have.
func (i *informer) RunWithContext(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !i.start(ctx) {
		return
	}
	backoff := wait.Backoff{Duration: minRetryDelay, Factor: 2, Jitter: 1, Steps: 100, Cap: maxRetryDelay}
	for ctx.Err() == nil {
		current := i.renew()
		i.running.Go(func() {
			if current.WaitForSync(ctx) != nil {
				return
			}
			for _, handler := range i.registrations() {
				handler.waitTaken(ctx)
			}
			if ctx.Err() == nil {
				i.synced.close()
			}
		})
		err := current.Run(ctx)
		if ctx.Err() != nil {
			break
		}
		var panicked *anykind.PanicError
		if errors.As(err, &panicked) {
			panic(err) //nolint:forbidigo // An index function, a transform or a watch error handler has panicked, which client-go passes on, too.
		}
		i.onWatchError(ctx, i.reflector, err)
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
		}
	}
	cancel()
	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.running.Wait()
}

func (i *informer) start(ctx context.Context) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return false // as in client-go, which logs it
	}
	i.started, i.ctx = true, ctx
	for handler := range i.handlers {
		i.running.Go(func() { handler.run(ctx, i) })
	}
	return true
}

// registrations returns the handlers.
func (i *informer) registrations() []*registration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.handlers))
}

// renew makes the cache, and tells handlers that wait for it.
func (i *informer) renew() *objectCache {
	i.mu.Lock()
	defer i.mu.Unlock()
	options := &anykind.Options[object]{
		LabelSelector: i.selectors.LabelSelector, FieldSelector: i.selectors.FieldSelector,
		Indexes: i.indexer.begin(), ResyncPeriod: i.minResync,
		OnInterruption: func(interruption dynamic.Interruption) {
			if interruption.Err != nil {
				i.onWatchError(i.ctx, i.reflector, interruption.Err)
			}
		},
	}
	if i.transform != nil {
		options.Transform = i.applyTransform
	}
	i.current = anykind.New(source{i.resource, i}, options)
	close(i.replaced)
	i.replaced = make(chan struct{})
	return i.current
}

// applyTransform leaves out an object that cannot be transformed, as client-go does.
func (i *informer) applyTransform(obj *object) *object {
	result, err := i.transform(obj)
	transformed, ok := result.(*object)
	if err == nil && !ok {
		err = fmt.Errorf("the transform returns a %T (it must return an *unstructured.Unstructured)", result)
	}
	if err != nil {
		i.onWatchError(i.ctx, i.reflector, fmt.Errorf("transform %s %s: %w", i.name, anykind.KeyOf(obj), err))
		return nil
	}
	return transformed
}

// cache returns the current cache, nil before Run, and a channel that is closed when another is made.
func (i *informer) cache() (*objectCache, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current, i.replaced
}

// source is a handle whose progress the informer follows.
type source struct {
	*dynamic.Resource
	informer *informer
}

// Follow implements the cache's Source.
func (s source) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[object], error] {
	own := dynamic.FollowOptions{}
	if opts != nil {
		own = *opts
	}
	onProgress := own.OnProgress
	own.OnProgress = func(version string) {
		s.informer.version.Store(&version)
		if onProgress != nil {
			onProgress(version)
		}
	}
	return s.Resource.Follow(ctx, &own)
}

// HasSynced implements cache.SharedInformer.
func (i *informer) HasSynced() bool { return i.synced.isDone() }

// HasSyncedChecker implements cache.SharedInformer.
func (i *informer) HasSyncedChecker() cache.DoneChecker { return i.synced }

// LastSyncResourceVersion implements cache.SharedInformer.
func (i *informer) LastSyncResourceVersion() string {
	if version := i.version.Load(); version != nil {
		return *version
	}
	return ""
}

// GetStore implements cache.SharedInformer.
func (i *informer) GetStore() cache.Store { return i.indexer }

// GetIndexer implements cache.SharedIndexInformer.
func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

// GetController implements cache.SharedInformer: an informer has all methods of a controller.
func (i *informer) GetController() cache.Controller { return i }

// AddIndexers implements cache.SharedIndexInformer.
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }

// IsStopped implements cache.SharedInformer.
func (i *informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

var errStarted = errors.New("informer has already started")

// SetTransform implements cache.SharedInformer.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return errStarted
	}
	i.transform = transform
	return nil
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (i *informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer.
func (i *informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return errStarted
	}
	i.onWatchError = handler
	return nil
}

// doneChecker implements cache.DoneChecker.
type doneChecker struct {
	name string
	done chan struct{}
	once sync.Once
}

func newDoneChecker(name string) *doneChecker {
	return &doneChecker{name: name, done: make(chan struct{})}
}

func (d *doneChecker) close() { d.once.Do(func() { close(d.done) }) }

// Name implements cache.DoneChecker.
func (d *doneChecker) Name() string { return d.name }

// Done implements cache.DoneChecker.
func (d *doneChecker) Done() <-chan struct{} { return d.done }

func (d *doneChecker) isDone() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}
