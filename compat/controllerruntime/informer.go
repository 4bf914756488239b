package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informer is a client-go SharedIndexInformer over a cache of anykind. The cache is made when the informer is run, since
// transforms, indexes and handlers may be added until then.
type informer struct {
	of        kindForm
	namespace string // "" for all
	source    *source
	selectors struct{ label, field string }
	resync    time.Duration
	synced    chan struct{} // closed when the cache has synced
	cache     atomic.Pointer[cache.Cache[cached]]

	mu           sync.Mutex
	running      sync.WaitGroup  // handlers
	ctx          context.Context // of the run; nil before
	stopped      bool
	transform    toolscache.TransformFunc
	onWatchError toolscache.WatchErrorHandlerWithContext
	indexers     toolscache.Indexers
	scanned      map[string]bool // indexes that were added after the start
	handlers     map[*handler]bool
}

func newInformer(of kindForm, namespace string, src *source, resync time.Duration, indexers toolscache.Indexers) *informer {
	i := &informer{
		of: of, namespace: namespace, source: src, resync: resync, synced: make(chan struct{}),
		indexers: maps.Clone(indexers), scanned: map[string]bool{}, handlers: map[*handler]bool{},
		onWatchError: toolscache.DefaultWatchErrorHandler,
	}
	if i.indexers == nil {
		i.indexers = toolscache.Indexers{}
	}
	return i
}

// Run runs the informer until the channel is closed.
func (i *informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext runs the informer until ctx ends and its handlers have returned.
func (i *informer) RunWithContext(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := i.start(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Informer not run", "kind", i.of.gvk)
		return
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		if c.WaitForSync(ctx) == nil {
			close(i.synced)
		}
	})
	err = c.Run(ctx)
	cancel()
	i.stop()
	var panicked *cache.PanicError
	if errors.As(err, &panicked) {
		panic(panicked) //nolint:forbidigo // client-go's informer passes a panic on, too.
	}
}

// start makes the cache and starts the handlers that wait for it.
func (i *informer) start(ctx context.Context) (*cache.Cache[cached], error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx != nil || i.stopped {
		return nil, errors.New("the informer was started before")
	}
	opts := &cache.Options[cached]{
		LabelSelector: i.selectors.label, FieldSelector: i.selectors.field, ResyncPeriod: i.resync, Indexes: map[string]func(*cached) []string{},
	}
	for name, valuesOf := range i.indexers {
		opts.Indexes[name] = indexFunc(name, valuesOf)
	}
	if i.transform != nil {
		opts.Transform = i.applyTransform
	}
	for h := range i.handlers {
		if h.resync > 0 && (opts.ResyncPeriod == 0 || h.resync < opts.ResyncPeriod) {
			opts.ResyncPeriod = h.resync
		}
	}
	reflector := toolscache.NewReflectorWithOptions(nil, nil, nil, toolscache.ReflectorOptions{Name: i.source.String(), TypeDescription: i.of.gvk.String()})
	i.source.report = func(err error) { i.onWatchError(ctx, reflector, err) }
	i.resync = opts.ResyncPeriod
	c := cache.New(i.source, opts)
	i.ctx = ctx
	i.cache.Store(c)
	for h := range i.handlers {
		i.startHandler(h) //nolint:contextcheck // Handlers run in the context of the informer.
	}
	return c, nil
}

// stop waits until the handlers have returned.
func (i *informer) stop() {
	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.running.Wait()
}

// applyTransform calls the transform. An object for which it fails is reported and left out.
func (i *informer) applyTransform(obj *cached) *cached {
	transformed, err := i.transform(obj.Object)
	if err != nil {
		i.source.report(fmt.Errorf("transform %s: %w", cache.KeyOf(obj), err))
		return nil
	}
	result, ok := transformed.(client.Object)
	if !ok {
		i.source.report(fmt.Errorf("transform %s: %T is not an object", cache.KeyOf(obj), transformed))
		return nil
	}
	return &cached{result}
}

// indexFunc adapts an index function. An error is a panic, as in client-go.
func indexFunc(name string, valuesOf toolscache.IndexFunc) func(*cached) []string {
	return func(obj *cached) []string {
		values, err := valuesOf(obj.Object)
		if err != nil {
			//nolint:forbidigo // client-go's indexer does.
			panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w", cache.KeyOf(obj), name, err))
		}
		return values
	}
}

// SetTransform implements toolscache.SharedInformer.
func (i *informer) SetTransform(transform toolscache.TransformFunc) error {
	return i.configure(func() { i.transform = transform })
}

// SetWatchErrorHandler implements toolscache.SharedInformer.
func (i *informer) SetWatchErrorHandler(handler toolscache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *toolscache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements toolscache.SharedInformer.
func (i *informer) SetWatchErrorHandlerWithContext(handler toolscache.WatchErrorHandlerWithContext) error {
	return i.configure(func() { i.onWatchError = handler })
}

// configure changes the informer unless it has been started.
func (i *informer) configure(change func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx != nil || i.stopped {
		return errors.New("informer has already started")
	}
	change()
	return nil
}

// AddIndexers implements toolscache.SharedIndexInformer. An index that is added after the start is computed when it is read.
func (i *informer) AddIndexers(indexers toolscache.Indexers) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return errors.New("indexer was not added because it has stopped already")
	}
	if conflicts := sets.KeySet(i.indexers).Intersection(sets.KeySet(indexers)); len(conflicts) > 0 {
		return fmt.Errorf("indexer conflict: %v", conflicts)
	}
	changed := maps.Clone(i.indexers) // readers have the old one
	maps.Copy(changed, indexers)
	i.indexers = changed
	for name := range indexers {
		i.scanned[name] = i.ctx != nil
	}
	return nil
}

// HasSynced implements toolscache.SharedInformer.
func (i *informer) HasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// HasSyncedChecker implements toolscache.SharedInformer.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker{name: i.of.gvk.String(), done: i.synced}
}

// IsStopped implements toolscache.SharedInformer.
func (i *informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// LastSyncResourceVersion implements toolscache.SharedInformer.
func (i *informer) LastSyncResourceVersion() string {
	if resourceVersion := i.source.resourceVersion.Load(); resourceVersion != nil {
		return *resourceVersion
	}
	return ""
}

// GetStore implements toolscache.SharedInformer.
func (i *informer) GetStore() toolscache.Store { return i.GetIndexer() }

// GetIndexer implements toolscache.SharedIndexInformer.
func (i *informer) GetIndexer() toolscache.Indexer { return &indexer{i} }

// GetController implements toolscache.SharedInformer, whose method does nothing useful.
func (i *informer) GetController() toolscache.Controller { return &controller{i} }

// recordWrite records a write that a read must find, if it is one of this informer's namespace.
func (i *informer) recordWrite(w dynamic.Write) {
	if c := i.cache.Load(); c != nil && (i.namespace == "" || i.namespace == w.Namespace) {
		c.RecordWrite(w)
	}
}

// waitForWrites waits until the cache has what was recorded: the writes to the keys or, without keys, all.
func (i *informer) waitForWrites(ctx context.Context, keys ...client.ObjectKey) error {
	c := i.cache.Load()
	if c == nil {
		return nil
	}
	wanted := make([]cache.Key, len(keys))
	for n, key := range keys {
		wanted[n] = cache.Key(key)
	}
	return c.WaitForWrites(ctx, wanted...)
}

// doneChecker is a toolscache.DoneChecker over a channel.
type doneChecker struct {
	name string
	done <-chan struct{}
}

func (d doneChecker) Name() string          { return d.name }
func (d doneChecker) Done() <-chan struct{} { return d.done }

// controller is the toolscache.Controller that SharedInformer requires.
type controller struct{ *informer }
