// Package sharedinformer implements client-go's SharedIndexInformer over package cache, for clientgo and controllerruntime.
// Export converts the objects of a cache to the objects of an informer.
package sharedinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/anykind/anykind/cache"
)

// Config configures an [Informer].
type Config[T any] struct {
	// Name is the name of the objects in errors and logs.
	Name   string
	Source cache.Source[T]
	// LabelSelector and FieldSelector choose objects, as in metav1.ListOptions.
	LabelSelector, FieldSelector string
	// ResyncPeriod is the default resync period of handlers; 0 means never.
	ResyncPeriod time.Duration
	Indexers     toolscache.Indexers
	// Intern shares equal maps and slices between unstructured objects, see package cache. It saves memory and time, but a write
	// to an object also changes objects with the same parts. By default objects share nothing, as in client-go. Under go test an
	// interning informer compares a sample of its objects.
	Intern bool
	// Export converts an object of the cache to an object of the informer. Import is the inverse; ok is false for an object of
	// another type.
	Export func(*T) any
	Import func(any) (obj *T, ok bool)
}

// Informer is a client-go SharedIndexInformer over a cache. Run creates the cache, because transforms, indexes and resync periods
// may change until then.
//
// KUBE_CACHE_MUTATION_DETECTOR=true makes the cache compare its objects, like cache.Options.DetectMutations. RunWithContext
// panics with the *cache.MutationError, as client-go's detector panics.
type Informer[T any, P cache.Object[T]] struct {
	*syncState
	config    Config[T]
	source    *source[T, P]
	reflector *toolscache.Reflector // an argument of watch error handlers
	cache     atomic.Pointer[cache.Cache[T]]

	mu           sync.Mutex
	running      sync.WaitGroup  // handlers
	ctx          context.Context //nolint:containedctx // of the run, for handlers added later; nil before
	stopped      bool
	resync       time.Duration // of the cache: the shortest period of the handlers
	transform    toolscache.TransformFunc
	onWatchError toolscache.WatchErrorHandlerWithContext
	indexers     toolscache.Indexers // never changed in place: readers use it without mu
	computed     sets.Set[string]    // indexes that the cache lacks: each read computes them
	handlers     sets.Set[*handler[T]]
}

// New returns an informer.
func New[T any, P cache.Object[T]](config *Config[T]) *Informer[T, P] {
	i := &Informer[T, P]{
		config: *config, resync: config.ResyncPeriod, syncState: newSyncState(config.Name),
		reflector: toolscache.NewReflectorWithOptions(nil, nil, nil, toolscache.ReflectorOptions{
			Name: config.Name, TypeDescription: config.Name,
		}),
		onWatchError: toolscache.DefaultWatchErrorHandler,
		indexers:     maps.Clone(config.Indexers), computed: sets.New(toolscache.NamespaceIndex), handlers: sets.New[*handler[T]](),
	}
	i.source = &source[T, P]{Source: config.Source, cached: i.Cache, report: i.Report}
	return i
}

// Cache returns the cache, or nil before the informer runs.
func (i *Informer[T, P]) Cache() *cache.Cache[T] { return i.cache.Load() }

// Report calls the watch error handler. The informer must be running.
func (i *Informer[T, P]) Report(err error) { i.onWatchError(i.ctx, i.reflector, err) }

// Run runs the informer until the channel is closed.
func (i *Informer[T, P]) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // client-go's Run has a channel in place of a context.
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	i.RunWithContext(ctx)
}

// RunWithContext runs the informer until ctx ends and its handlers have returned.
func (i *Informer[T, P]) RunWithContext(ctx context.Context) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	c := i.start(running)
	if c == nil {
		klog.FromContext(ctx).Info("Informer not run: it runs already, or has run", "informer", i.config.Name)
		return
	}
	i.running.Go(func() {
		if c.WaitForSync(running) != nil {
			return
		}
		if i.waitTaken(); running.Err() == nil {
			i.setSynced()
		}
	})
	err := c.Run(running)
	cancel()
	i.stop()
	var panicked *cache.PanicError
	var mutation *cache.MutationError
	switch {
	case errors.As(err, &panicked):
		panic(panicked) //nolint:forbidigo // client-go's informer passes a panic on, too.
	case errors.As(err, &mutation):
		panic(mutation) //nolint:forbidigo // client-go's mutation detector panics, too.
	case ctx.Err() == nil:
		i.Report(err)
	}
}

// start creates the cache and starts the added handlers. It returns nil if the informer has been started before.
func (i *Informer[T, P]) start(ctx context.Context) *cache.Cache[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx != nil {
		return nil
	}
	opts := &cache.Options[T]{
		LabelSelector: i.config.LabelSelector, FieldSelector: i.config.FieldSelector, ResyncPeriod: i.resync,
		Indexes: map[string]func(*T) []string{}, DisableInterning: !i.config.Intern,
	}
	opts.DetectMutations, _ = strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))
	for name, valuesOf := range i.indexers {
		if !i.computed.Has(name) {
			opts.Indexes[name] = i.indexFunc(name, valuesOf)
		}
	}
	if i.transform != nil {
		opts.Transform = i.applyTransform
	}
	c := cache.New[T, P](i.source, opts)
	i.ctx = ctx
	i.cache.Store(c)
	for h := range i.handlers {
		i.startHandler(h)
	}
	return c
}

// stop rejects new handlers and waits until all handlers have returned.
func (i *Informer[T, P]) stop() {
	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.running.Wait()
}

// applyTransform calls the transform. After an error the object is reported and left out.
func (i *Informer[T, P]) applyTransform(obj *T) *T {
	result, err := i.transform(i.config.Export(obj))
	transformed, ok := i.config.Import(result)
	if err == nil && !ok {
		err = fmt.Errorf("the transform returns a %T, which is no object of the informer", result)
	}
	if err != nil {
		i.Report(fmt.Errorf("transform %s %s: %w", i.config.Name, toolscache.ObjectName(cache.KeyOf(P(obj))), err))
		return nil
	}
	return transformed
}

// indexFunc adapts an index function. As in client-go, an error of the function panics.
func (i *Informer[T, P]) indexFunc(name string, valuesOf toolscache.IndexFunc) func(*T) []string {
	return func(obj *T) []string {
		values, err := valuesOf(i.config.Export(obj))
		if err != nil {
			//nolint:forbidigo // client-go's indexer panics, too.
			panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w", toolscache.ObjectName(cache.KeyOf(P(obj))), name, err))
		}
		return values
	}
}

// SetTransform implements toolscache.SharedInformer.
func (i *Informer[T, P]) SetTransform(transform toolscache.TransformFunc) error {
	return i.configure(func() { i.transform = transform })
}

// SetWatchErrorHandler implements toolscache.SharedInformer.
func (i *Informer[T, P]) SetWatchErrorHandler(onError toolscache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *toolscache.Reflector, err error) { onError(r, err) })
}

// SetWatchErrorHandlerWithContext implements toolscache.SharedInformer. As in client-go, nil means the default handler.
func (i *Informer[T, P]) SetWatchErrorHandlerWithContext(onError toolscache.WatchErrorHandlerWithContext) error {
	if onError == nil {
		onError = toolscache.DefaultWatchErrorHandler
	}
	return i.configure(func() { i.onWatchError = onError })
}

// configure changes the informer unless it has been started.
func (i *Informer[T, P]) configure(change func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx != nil {
		return errors.New("informer has already started")
	}
	change()
	return nil
}

// AddIndexers implements toolscache.SharedIndexInformer. Indexes added after the start are computed at each read.
func (i *Informer[T, P]) AddIndexers(indexers toolscache.Indexers) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return errors.New("indexer was not added because it has stopped already")
	}
	if conflicts := sets.KeySet(i.indexers).Intersection(sets.KeySet(indexers)); len(conflicts) > 0 { // printed as by client-go
		return fmt.Errorf("indexer conflict: %v", conflicts)
	}
	changed := toolscache.Indexers{}
	maps.Copy(changed, i.indexers)
	maps.Copy(changed, indexers)
	i.indexers = changed
	if i.ctx != nil {
		i.computed = i.computed.Union(sets.KeySet(indexers))
	}
	return nil
}

// IsStopped implements toolscache.SharedInformer.
func (i *Informer[T, P]) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// LastSyncResourceVersion implements toolscache.SharedInformer.
func (i *Informer[T, P]) LastSyncResourceVersion() string {
	if resourceVersion := i.source.resourceVersion.Load(); resourceVersion != nil {
		return *resourceVersion
	}
	return ""
}

// GetStore implements toolscache.SharedInformer.
func (i *Informer[T, P]) GetStore() toolscache.Store { return i.GetIndexer() }

// GetIndexer implements toolscache.SharedIndexInformer.
func (i *Informer[T, P]) GetIndexer() toolscache.Indexer { return indexer[T, P]{i} }

// GetController implements toolscache.SharedInformer. As in client-go, the controller cannot be run.
func (i *Informer[T, P]) GetController() toolscache.Controller { return controller{i} }

// controller is the toolscache.Controller of an informer.
type controller struct{ toolscache.SharedInformer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}
