package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// Operator calls handlers with the changes of objects. It is the short form of a controller: a handler receives a change instead
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

// watchFunc runs a watch until ctx ends or it cannot continue.
type watchFunc func(ctx context.Context) error

// Handler handles a change of an object: watch.Added (also for each object of the initial list), watch.Modified or watch.Deleted.
// change.Object belongs to the handler. change.Old is the last handled state, shared and read-only. FinalStateUnknown is also set
// if a newer object of the same name replaced the final state before the call; Object is then the last handled state.
//
// Added and Deleted are paired for each UID, even if calls fail: an object with an Added call gets a Deleted call. If no Added
// succeeded, its Old is the state of the last failed Added. An object deleted before its first Added gets neither.
//
// A handler is not called with a state older than the states received by [Finalize], [SetStatus] and [PatchStatus] in earlier
// calls for the object. If events are late, the call waits for them, for at most 2 minutes. These functions must get the
// handler's ctx.
//
// With Options.Sharding, objects that come into the member's shard are Added. Objects that leave it are not Deleted: their next
// member handles them. A deletion between the two members is handled by neither, as while a process restarts: see [Finalize].
//
// While the server does not serve the resource there are no changes. An object counts as deleted only if the API reports it, if a
// complete list lacks it, or if its CustomResourceDefinition is deleted or replaced (new UID). Errors and panics are logged, and
// the handler is called again after a backoff, with the current state of the object. A [TerminalError] of Added or Modified is
// repeated after the next change, a TerminalError of Deleted never. An update dropped by Options.Predicates is part of the next
// Modified.
type Handler func(ctx context.Context, change cache.Change[unstructured.Object]) error

// NewOperator returns an operator without watches. opts.Triggers is ignored. Each watch has its own queue and Options.Workers
// workers: with several watches, calls of Queue.Metrics are concurrent.
func NewOperator(opts *Options) *Operator { return &Operator{opts: *cmp.Or(opts, &Options{})} }

// Watch adds a watch: Run calls handler for every object of resource, in the handle's namespace or namespaces, and for its
// changes. The changes of an object are handled in order and never concurrently. Changes pending for an object are merged into a
// single change; an object created and deleted meanwhile is not handled. A watch added during Run starts at once. Run ends if it
// fails.
func (o *Operator) Watch(resource *dynamic.Resource, handler Handler) {
	o.add(func(ctx context.Context) error { return runWatch(ctx, resource, handler, handledObjects{}, &o.opts) })
}

// WatchKind is [Operator.Watch] for a kind that may not be served: its CustomResourceDefinition does not exist yet, or is deleted
// before the watch has synced. During Run the watch waits for the kind, logs the wait, and starts once the kind is served. Objects handled
// before are then Deleted, if they are gone. The remaining watches do not wait.
//
// namespace is the watched namespace; "" (metav1.NamespaceAll) means all and is required for a cluster-scoped kind. A gvk without
// a version means the server's preferred version at the start. An error of [dynamic.Client.WaitForKinds] ends Run.
func (o *Operator) WatchKind(client *dynamic.Client, gvk schema.GroupVersionKind, namespace string, handler Handler) {
	o.add(func(ctx context.Context) error {
		handled := handledObjects{} // also before the watch has synced
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
			if err := runWatch(ctx, resource, handler, handled, &o.opts); !retry.IsPathNotFound(err) {
				return err
			}
		}
	})
}

// waitForKind returns the resource of a kind once the server serves it. It logs a wait.
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

// Run watches until ctx ends, the server rejects the start of a watch, or a callback in Options panics ([*cache.PanicError]). It
// waits for running handlers like [Run]. A second concurrent Run is an error.
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

// runWatch watches until ctx ends or the cache fails. handled has the objects of an earlier watch.
func runWatch(ctx context.Context, resource *dynamic.Resource, handler Handler, handled handledObjects, opts *Options) error {
	cacheOpts := &cache.Options[unstructured.Object]{}
	if opts.Sharding != nil {
		cacheOpts.Shard = shard.New(opts.Sharding.Field())
	}
	t := &changeTracker{
		handler: handler, predicates: opts.Predicates, objects: cache.New(resource, cacheOpts),
		handled: handled, deleted: map[types.NamespacedName]cache.Change[unstructured.Object]{},
		removed: map[types.NamespacedName]struct{}{}, earlier: slices.Collect(maps.Keys(handled)),
	}
	r := newRunner(opts, resource, t.objects, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		return 0, t.reconcile(ctx, key)
	})
	if opts.Sharding != nil {
		s, err := shardRunner(r, t.uidOf, t.objects)
		if err != nil {
			return err
		}
		defer s.fence.Close()
		s.onDrop = t.forget
	}
	return r.work(ctx, func(ctx context.Context) {
		var cached sync.WaitGroup
		cached.Go(func() { r.end(t.objects.Run(ctx)) })
		r.protect("a watch of an Operator", func() error { return t.enqueue(ctx, r.queue, r.opts.Logger) })
		cached.Wait()
	})
}

// changeTracker computes the changes of each object: the difference between the last handled state and the cache.
type changeTracker struct {
	handler    Handler
	predicates []Predicate
	objects    *cache.Cache[unstructured.Object]

	mu      sync.Mutex
	handled handledObjects
	deleted map[types.NamespacedName]cache.Change[unstructured.Object] // deletions possibly to be handled
	removed map[types.NamespacedName]struct{}                          // left the shard since the last reconcile
	earlier []types.NamespacedName                                     // handled by an earlier watch
}

// handledObjects are the objects of a watch by key.
type handledObjects map[types.NamespacedName]handledObject

// handledObject is an object between its first Added call and a successful Deleted call.
type handledObject struct {
	state *unstructured.Object // the last handled state; before isAdded, of the last attempt
	// isAdded is set after a successful Added. A failed Added may have had effects, to be ended by Deleted.
	isAdded bool
}

// enqueue adds the keys of changed objects to the queue until ctx ends or the cache stops. It returns the cache's error.
func (t *changeTracker) enqueue(ctx context.Context, queue *workqueue.Queue[types.NamespacedName], log *slog.Logger) error {
	served := servedLog{log: log, resource: t.objects.String()}
	for change := range t.objects.Changes(ctx) {
		served.handle(change.Type)
		if change.Type == dynamic.Synced {
			for _, key := range t.earlier {
				queue.Add(key)
			}
		}
		if change.Object == nil {
			continue
		}
		passed, err := Passes(t.predicates, change)
		if err != nil {
			return err
		}
		key := cache.KeyOf(change.Object)
		t.mu.Lock()
		switch change.Type {
		case watch.Deleted: // kept even if the object was not handled: its handler may be running
			t.deleted[key] = change
		case cache.Removed: // it may be handled by another member of the group from now on
			t.removed[key] = struct{}{}
		default:
		}
		t.mu.Unlock()
		if passed {
			queue.Add(key)
		}
	}
	return t.objects.WaitForStop(ctx)
}

// reconcile calls the handler with the changes of an object. The queue prevents concurrent calls for the same key.
func (t *changeTracker) reconcile(ctx context.Context, key types.NamespacedName) error {
	t.mu.Lock()
	_, wasRemoved := t.removed[key]
	t.mu.Unlock()
	if wasRemoved {
		t.forget(key)
	}
	current, _ := t.objects.Get(key.Namespace, key.Name)
	t.mu.Lock()
	last := t.handled[key]
	deleted := t.deleted[key]
	old := last.state
	if deleted.Object != nil && !hasUID(old, deleted.Object) && !hasUID(current, deleted.Object) {
		delete(t.deleted, key) // its object was never handled
	}
	t.mu.Unlock()
	if old != nil && (current == nil || current.GetUID() != old.GetUID()) {
		// The deletion of a replaced object has the state delivered last: the handler may have had a newer one from the cache.
		if deleted.Object == nil || deleted.Object.GetUID() != old.GetUID() ||
			resourceversion.IsNewer(old.GetResourceVersion(), deleted.Object.GetResourceVersion()) {
			deleted = cache.Change[unstructured.Object]{Type: watch.Deleted, Object: old, FinalStateUnknown: true}
		}
		deleted.Old = old
		deletedErr := t.handle(ctx, key, deleted)
		if current == nil || deletedErr != nil && !isTerminal(deletedErr) {
			return deletedErr
		}
		err := t.handle(ctx, key, cache.Change[unstructured.Object]{Type: watch.Added, Object: current})
		if err == nil {
			return deletedErr
		}
		if deletedErr != nil { // only the error of Added decides about a retry
			return fmt.Errorf("%w (the deletion before: %v)", err, deletedErr) //nolint:errorlint // see above
		}
		return err
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

// hasUID reports whether obj exists and has the UID of a deleted object.
func hasUID(obj, deleted *unstructured.Object) bool {
	return obj != nil && obj.GetUID() == deleted.GetUID()
}

// forget removes the state of an object that has left the shard. No handler runs for it.
func (t *changeTracker) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.handled, key)
	delete(t.deleted, key)
	delete(t.removed, key)
}

// uidOf returns the UID of the object to be handled: the current one, or the deleted one.
func (t *changeTracker) uidOf(key types.NamespacedName) types.UID {
	if current, found := t.objects.Get(key.Namespace, key.Name); found {
		return current.GetUID()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if deleted := t.deleted[key]; deleted.Object != nil {
		return deleted.Object.GetUID()
	}
	if last := t.handled[key]; last.state != nil {
		return last.state.GetUID()
	}
	return ""
}

func (t *changeTracker) handle(ctx context.Context, key types.NamespacedName, change cache.Change[unstructured.Object]) error {
	object := change.Object
	change.Object = object.DeepCopy()
	if change.Type == watch.Added {
		t.setHandled(key, handledObject{state: object})
	}
	err := t.handler(ctx, change)
	if change.Type == watch.Deleted && (err == nil || isTerminal(err)) {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.handled, key)
		if hasUID(t.deleted[key].Object, object) { // an object of the same name may have been deleted meanwhile
			delete(t.deleted, key)
		}
		return err
	}
	if err != nil {
		return err
	}
	t.setHandled(key, handledObject{object, true})
	return nil
}

func (t *changeTracker) setHandled(key types.NamespacedName, object handledObject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handled[key] = object
}
