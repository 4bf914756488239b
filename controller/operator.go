package controller

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Operator calls handlers with the changes of objects: the short form of a controller, whose handler gets a change instead
// of reading a cache.
//
//	operator := controller.NewOperator(nil)
//	operator.Watch(pods.AllNamespaces(), handlePod)
//	return operator.Run(ctx)
//
// It is safe for concurrent use.
type Operator struct {
	opts    Options
	running atomic.Bool

	mu      sync.Mutex
	watches []watchFunc
	start   func(watchFunc) // set while Run accepts watches
}

// watchFunc runs one watch until ctx ends or it cannot continue.
type watchFunc func(ctx context.Context) error

// Handler handles one change of an object: watch.Added, also for each object of the initial list, watch.Modified or
// watch.Deleted. Its Object is the handler's own; Old is the state that the handler handled last, which is shared and
// read-only. FinalStateUnknown is also set if the state after Object was replaced before the handler could be called.
//
// Added and Deleted are paired for each UID, also if calls fail: every object whose Added was called gets a Deleted, whose Old is the
// state of the last failed Added if none succeeded. An object that is deleted before its first Added gets neither.
//
// A handler is not called with an older state of its object than [Finalize], [SetStatus] and [PatchStatus] have received in
// earlier calls: if events are late, it is called when they arrive, or after 2 minutes. For that these functions must get the
// handler's ctx.
//
// While the server does not serve the resource there are no changes: objects are deleted only if the API reported it, if a
// list of all objects lacks them, or if their CustomResourceDefinition is deleted. After an error or a panic, which is
// logged, the handler is called again with backoff and the state that the object has then.
type Handler func(ctx context.Context, change cache.Change[unstructured.Object]) error

// NewOperator returns an operator without watches. Of opts, Triggers are not used. Each watch has a queue and
// Options.Workers of its own: with several watches, Queue.Metrics are called by several goroutines at the same time.
func NewOperator(opts *Options) *Operator { return &Operator{opts: *cmp.Or(opts, &Options{})} }

// Watch adds a watch: Run calls handler for every object of a resource, in the handle's namespace or namespaces, and for
// each of its changes. The changes of one object are handled in order, one at a time. Several changes before the handler is called are
// merged into one; an object that is created and deleted meanwhile is not handled. A watch that is added while Run is
// running starts at once, and ends Run if it fails.
func (o *Operator) Watch(resource *dynamic.Resource, handler Handler) {
	o.add(func(ctx context.Context) error { return runWatch(ctx, resource, handler, &o.opts) })
}

// WatchKind is [Operator.Watch] for a kind that the server may not serve, because its CustomResourceDefinition does not
// exist or is deleted before the watch has synced: while Run is running the watch waits for it, which is logged, and starts when
// it is served; other watches do not wait. namespace is the one to watch; "" (metav1.NamespaceAll) means all and is required for a cluster-scoped kind. A gvk
// without a version means the version that the server prefers then. What ends [dynamic.Client.WaitForKinds] before ctx does
// ends Run.
func (o *Operator) WatchKind(client *dynamic.Client, gvk schema.GroupVersionKind, namespace string, handler Handler) {
	o.add(func(ctx context.Context) error {
		for {
			resource, err := o.waitForKind(ctx, client, gvk)
			if err != nil {
				return err
			}
			if namespace == "" {
				resource = resource.AllNamespaces()
			} else {
				resource = resource.Namespace(namespace)
			}
			if err := runWatch(ctx, resource, handler, &o.opts); !retry.IsPathNotFound(err) {
				return err
			}
		}
	})
}

// waitForKind returns the resource of a kind when the server serves it, and logs if that is later.
func (o *Operator) waitForKind(ctx context.Context, client *dynamic.Client, gvk schema.GroupVersionKind) (*dynamic.Resource, error) {
	client.Discovery().Invalidate() // the kind may have been deleted since the latest snapshot
	resource, err := client.ForKind(ctx, gvk)
	if err == nil {
		return resource, nil
	}
	logger := cmp.Or(o.opts.Logger, slog.Default())
	logger.Info("the kind is not served yet: its watch waits", "kind", gvk.GroupKind().String(), "error", err)
	found, err := client.WaitForKinds(ctx, gvk)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func (o *Operator) add(w watchFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watches = append(o.watches, w)
	if o.start != nil {
		o.start(w)
	}
}

// Run watches until ctx ends, until the server rejects the start of a watch, or until a callback in Options panics, which
// is a [*cache.PanicError]. It waits for running handlers, as [Run] does. It cannot run twice at the same time.
func (o *Operator) Run(parent context.Context) error {
	if !o.running.CompareAndSwap(false, true) {
		return errors.New("run an operator: it runs already")
	}
	defer o.running.Store(false)
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	var all sync.WaitGroup
	var panics firstPanic
	o.mu.Lock()
	o.start = func(w watchFunc) { all.Go(func() { stop(panics.record(w(ctx))) }) }
	for _, w := range o.watches {
		o.start(w)
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.start = nil
	o.mu.Unlock()
	all.Wait()
	return panics.join(endError(parent, ctx))
}

// runWatch watches until ctx ends or the cache fails.
func runWatch(ctx context.Context, resource *dynamic.Resource, handler Handler, opts *Options) error {
	t := &changeTracker{
		handler: handler, objects: cache.New(resource, nil),
		handled: map[cache.Key]handledObject{}, deleted: map[cache.Key]cache.Change[unstructured.Object]{},
	}
	r := newRunner(opts, resource, t.objects, func(ctx context.Context, key cache.Key) (time.Duration, error) {
		return 0, t.reconcile(ctx, key)
	})
	return r.work(ctx, func(ctx context.Context) {
		var cached sync.WaitGroup
		cached.Go(func() { r.end(t.objects.Run(ctx)) })
		r.protect("a watch of an Operator", func() error { return t.enqueue(ctx, r.queue, r.opts.Logger) })
		cached.Wait()
	})
}

// changeTracker finds the changes of each object by comparing the state that the handler handled last with the cache.
type changeTracker struct {
	handler Handler
	objects *cache.Cache[unstructured.Object]

	mu      sync.Mutex
	handled map[cache.Key]handledObject
	deleted map[cache.Key]cache.Change[unstructured.Object] // deletions that may have to be handled
}

// handledObject is an object of which the handler knows: its Added was called, and no Deleted has succeeded since.
type handledObject struct {
	state *unstructured.Object // the last that the handler handled; before isAdded, that of the last attempt
	// isAdded is set once Added has succeeded. A failed Added may have had effects, which Deleted must end.
	isAdded bool
}

// enqueue adds the keys of changed objects to the queue until ctx ends or the cache stops, whose error it returns.
func (t *changeTracker) enqueue(ctx context.Context, queue *workqueue.Queue[cache.Key], log *slog.Logger) error {
	served := servedLog{log: log, resource: t.objects.String()}
	for change := range t.objects.Changes(ctx) {
		served.handle(change.Type)
		if change.Object == nil {
			continue
		}
		key := cache.KeyOf(change.Object)
		if change.Type == watch.Deleted { // kept even if the object was not handled: its handler may be running
			t.mu.Lock()
			t.deleted[key] = change
			t.mu.Unlock()
		}
		queue.Add(key)
	}
	return t.objects.WaitForStop(ctx)
}

// reconcile calls the handler with the changes of one object. The queue prevents two calls for one object at a time.
func (t *changeTracker) reconcile(ctx context.Context, key cache.Key) error {
	current, _ := t.objects.Get(key.Namespace, key.Name)
	t.mu.Lock()
	last, deleted := t.handled[key], t.deleted[key]
	old := last.state
	if old == nil {
		delete(t.deleted, key)
	}
	t.mu.Unlock()
	if old != nil && (current == nil || current.GetUID() != old.GetUID()) {
		if deleted.Object == nil || deleted.Object.GetUID() != old.GetUID() {
			deleted = cache.Change[unstructured.Object]{Type: watch.Deleted, Object: old, FinalStateUnknown: true}
		}
		deleted.Old = old
		if err := t.handle(ctx, key, deleted); err != nil {
			return err
		}
		last = handledObject{}
	}
	switch {
	case current == nil:
		return nil
	case !last.isAdded:
		return t.handle(ctx, key, cache.Change[unstructured.Object]{Type: watch.Added, Object: current})
	case old.GetResourceVersion() != current.GetResourceVersion():
		return t.handle(ctx, key, cache.Change[unstructured.Object]{Type: watch.Modified, Object: current, Old: old})
	default:
		return nil
	}
}

func (t *changeTracker) handle(ctx context.Context, key cache.Key, change cache.Change[unstructured.Object]) error {
	object := change.Object
	change.Object = object.DeepCopy()
	if change.Type == watch.Added {
		t.setHandled(key, handledObject{state: object})
	}
	if err := t.handler(ctx, change); err != nil {
		return err
	}
	if change.Type == watch.Deleted {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.handled, key)
		delete(t.deleted, key)
		return nil
	}
	t.setHandled(key, handledObject{object, true})
	return nil
}

func (t *changeTracker) setHandled(key cache.Key, object handledObject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handled[key] = object
}
