package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/consistency"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// ReconcileFunc brings the cluster in line with an object, or with its absence. It gets the key alone, reads the current state
// from the cache, and may be called any number of times. Errors and panics are logged, and the call is repeated after the delay of
// Options.Queue.RateLimiter, unless the error is a [TerminalError] or from [RetryAfter]. With after > 0 and no error the call is
// repeated after this duration, even if a change triggers an earlier call.
type ReconcileFunc func(ctx context.Context, key types.NamespacedName) (after time.Duration, err error)

// Options configure [Run] and [Operator]. nil and zero values mean the defaults.
type Options struct {
	// Workers is the maximum number of concurrent reconciles; 0 means 1. Reconciles of the same object are never concurrent.
	Workers int
	// Triggers are caches of related objects. Their changes trigger reconciles; see [Owns] and [Watches].
	Triggers []Trigger
	// Predicates drop updates of the reconciled objects: an update is reconciled if all of them return true. Changes of Triggers
	// have the predicates of [Owns] and [Watches].
	Predicates []Predicate
	// Grace is how long running reconciles may continue after the end of ctx, before their own ctx ends. 0 means 30 seconds. If
	// the Lease of leaderelection.Run is lost, before or meanwhile, their ctx ends at once.
	Grace time.Duration
	// Sharding divides the keys among the members of a group. Run must be called within the work of sharding.Group.Run. The group sets
	// the shard of the cache, which needs cache.Options.Shard with the group's field, and of caches of Triggers that have the same
	// field. A key is reconciled by one member at a time; see package sharding. A reconcile's ctx ends with the cause
	// leaderelection.ErrLeaseLost when a different member may reconcile the key, without the Grace. See docs/SCALE.md.
	Sharding *sharding.Group
	// Queue sets the rate limiter and the metrics of the work queue. OnPanic is not used. In the metrics, a key waiting for
	// writes is done, and then added again with its priority.
	Queue workqueue.Options
	// QueueMetrics returns the metrics of a new queue, in place of Queue.Metrics. Run has one queue, an [Operator] one for each watch.
	// resource is nil for [RunKeys], and for a cache with a custom source.
	QueueMetrics func(resource *dynamic.Resource) workqueue.Metrics
	// OnReconcile is called after every reconcile, for metrics. Calls are concurrent. A panic in it ends Run.
	OnReconcile func(ReconcileResult)
	// Logger receives every failed reconcile with the kind, the key and the error, and the loss of a Lease; nil means
	// slog.Default(). slog.New(slog.DiscardHandler) is silent.
	Logger *slog.Logger
}

// ReconcileResult is the result of a reconcile.
type ReconcileResult struct {
	// GVK and GVR are the kind and the resource of Key. Both are zero if the source of the cache is not a handle of package
	// dynamic.
	GVK schema.GroupVersionKind
	GVR schema.GroupVersionResource
	// Cluster is the cluster of Key, "" unless the controller has several; see [RunKeys].
	Cluster  string
	Key      types.NamespacedName
	Duration time.Duration
	// After is the delay of the next call, as returned by a reconcile without an error; 0 means none.
	After time.Duration
	// Err is the error of the reconcile, a [*cache.PanicError] after a panic.
	Err error
}

const (
	defaultGrace = 30 * time.Second
	// lowPriority is the priority of objects in the initial list and in a resync: changes are reconciled first.
	lowPriority = -100
)

// Run reconciles every object of c, and reconciles it again whenever the object or an object of a Trigger changes, until ctx
// ends. The caller runs the caches: go c.Run(ctx). The first reconcile waits until all of them have synced. Changes are reconciled first:
// objects of initial lists and of resyncs have a low priority; see workqueue.AddOptions.
//
// When ctx ends, Run starts no more reconciles, waits for running reconciles, and returns ctx's error with its cause. It returns
// the error of a cache if the cache ends first, and a [*cache.PanicError] if a function in opts panics. If the server rejects a
// part of a cache's namespaces, Run logs it and reconciles the objects of the remaining namespaces.
//
// A reconcile reads the writes by earlier reconciles of the key, if they used their ctx and cache.Cache.TrackWrites handles. It
// also reads the tracked writes to its own object from before its turn. Until the caches have these writes, only this key waits.
// Run logs a wait of ten seconds. If a cache has not received a write within the limits of cache.Cache.WaitForWrites, Run logs
// the write and continues without it.
//
// With the ctx of leaderelection.Run, the ctx of every reconcile ends at once when the Lease is lost, with the cause
// ErrLeaseLost: a different process may reconcile then. The same holds for any ctx with such a cause.
func Run[T any, P cache.Object[T]](ctx context.Context, c *cache.Cache[T], reconcile ReconcileFunc, opts *Options) error {
	r := newRunner(opts, resourceOf(c), c, reconcile)
	var s *shards
	keyOf := func(obj *T) []types.NamespacedName { return []types.NamespacedName{cache.KeyOf(P(obj))} }
	own := watches(c, keyOf, r.opts.Predicates, func(change cache.Change[T]) {
		if s != nil && change.Type == watch.Deleted {
			s.deleted.Store(cache.KeyOf(P(change.Object)), P(change.Object).GetUID())
		}
	})
	triggers := append([]Trigger{own}, r.opts.Triggers...)
	if r.opts.Sharding != nil {
		caches := []triggerCache{}
		for _, trigger := range triggers {
			caches = append(caches, trigger.cache)
		}
		var err error
		s, err = shardRunner(r, func(key types.NamespacedName) types.UID {
			if obj, found := c.Get(key.Namespace, key.Name); found {
				return P(obj).GetUID()
			}
			return ""
		}, caches...)
		if err != nil {
			return err
		}
		defer s.fence.Close()
	}
	return run(ctx, r, triggers)
}

// resourceOf returns a cache's source if it is a handle of package dynamic, and nil otherwise.
func resourceOf[T any](c *cache.Cache[T]) *dynamic.Resource {
	if handle, ok := c.Source().(*dynamic.Handle[T]); ok {
		return dynamic.As[unstructured.Object](handle)
	}
	return nil
}

// runner is a call of Run or RunKeys, or a watch of an operator.
type runner[K comparable] struct {
	opts      Options
	reconcile func(ctx context.Context, key K) (after time.Duration, err error)
	queue     *workqueue.Queue[K]
	keys      Keys[K]
	waited    sync.Map       // queued keys after the wait for writes to their object
	workers   sync.WaitGroup // includes waits for writes
	// isOwned drops a key of a different member, and begin also parks a key; see shards. Both are nil without Options.Sharding.
	isOwned func(key K) bool
	begin   func(ctx context.Context, key K) (context.Context, func(error), bool)

	stop       context.CancelCauseFunc // ends the runner's ctx
	firstPanic firstPanic
}

// newRunner returns a runner of the objects of a cache. resource is nil for a cache with a custom source.
func newRunner(opts *Options, resource *dynamic.Resource, objects ObjectCache, reconcile ReconcileFunc) *runner[types.NamespacedName] {
	all := &Objects{Cache: objects, Resource: resource}
	r := newKeyRunner(opts, resource, Keys[types.NamespacedName]{
		Object: func(key types.NamespacedName) (*Objects, types.NamespacedName) { return all, key },
	}, reconcile)
	if resource != nil {
		r.opts.Logger = r.opts.Logger.With("kind", resource.APIResource().GVK.GroupKind().String())
	}
	return r
}

func newKeyRunner[K comparable](
	opts *Options, resource *dynamic.Resource, keys Keys[K], reconcile func(ctx context.Context, key K) (time.Duration, error),
) *runner[K] {
	r := &runner[K]{opts: *cmp.Or(opts, &Options{}), reconcile: reconcile, keys: keys}
	r.opts.Grace = cmp.Or(r.opts.Grace, defaultGrace)
	r.opts.Logger = cmp.Or(r.opts.Logger, slog.Default())
	if r.opts.QueueMetrics != nil {
		r.opts.Queue.Metrics = r.opts.QueueMetrics(resource)
	}
	r.opts.Queue.OnPanic = func(value any) { r.end(newPanicError("Options.Queue.Metrics", nil, value)) }
	r.queue = workqueue.New[K](&r.opts.Queue)
	return r
}

// run runs the triggers and the workers of r.
func run(parent context.Context, r *runner[types.NamespacedName], triggers []Trigger) error {
	for _, trigger := range triggers {
		err := trigger.cache.WaitForSync(parent)
		var rejected *cache.RejectedError
		if errors.As(err, &rejected) {
			r.opts.Logger.Warn("the objects of some namespaces are not known yet: the server rejects requests", "error", err)
			continue
		}
		if err != nil {
			return retry.WithContextError(parent, err)
		}
	}
	return r.work(parent, func(ctx context.Context) {
		var all sync.WaitGroup
		for _, trigger := range triggers {
			all.Go(func() {
				r.protect("a Trigger of a controller", func() error { return trigger.enqueue(ctx, r.queue, r.opts.Logger) })
			})
		}
		all.Wait()
	})
}

// work runs enqueue and the workers until parent ends or any of them fails.
func (r *runner[K]) work(parent context.Context, enqueue func(ctx context.Context)) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	r.stop = stop
	reconcileCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer leaderelection.AfterFunc(ctx, func(cause error) {
		cancel(cause)
		r.opts.Logger.Warn("reconciles are canceled: the leader lease is not held", "error", cause)
	})()
	var enqueuing sync.WaitGroup
	enqueuing.Go(func() { enqueue(ctx) })
	for range max(r.opts.Workers, 1) {
		r.workers.Go(func() {
			r.protect("a worker of a controller", func() error { return r.reconcileKeys(ctx, reconcileCtx) })
		})
	}
	<-ctx.Done()
	grace := time.AfterFunc(r.opts.Grace, func() { cancel(fmt.Errorf("%w: the grace of %s is over", context.Canceled, r.opts.Grace)) })
	defer grace.Stop()
	r.workers.Wait()
	r.queue.ShutDown()
	enqueuing.Wait()
	return r.firstPanic.join(endError(parent, ctx))
}

func (r *runner[K]) end(err error) { r.stop(r.firstPanic.record(err)) }

// protect calls f, and ends the runner after an error, a panic or runtime.Goexit of f.
func (r *runner[K]) protect(name string, f func() error) {
	err := errGoexit
	defer func() {
		if err != nil {
			r.end(err)
		}
	}()
	defer contain(&err, name, nil)
	err = f()
}

func (r *runner[K]) reconcileKeys(ctx, reconcileCtx context.Context) error {
	for {
		key, priority, ok := r.queue.GetWithPriority(ctx)
		if !ok {
			return nil
		}
		if r.isOwned != nil && !r.isOwned(key) {
			continue
		}
		objects, object := r.keys.Object(key)
		if _, hasWaited := r.waited.LoadAndDelete(key); !hasWaited && objects != nil && !objects.Cache.HasWrites(object) {
			r.reconcileAfterWrites(ctx, key, priority)
			continue
		}
		if !r.awaitLease(ctx, reconcileCtx) {
			return nil
		}
		if objects == nil {
			r.queue.Forget(key)
		}
		if objects == nil || !r.admit(key, priority) {
			r.queue.Done(key)
			continue
		}
		err := r.reconcileKey(ctx, reconcileCtx, key, objects, object)
		r.release(key)
		if err != nil {
			return err
		}
	}
}

// leaseCheckInterval is the time between checks of a lease whose deadline has passed.
const leaseCheckInterval = 10 * time.Millisecond

// awaitLease returns false once ctx has ended. It returns true before the deadline of the lease. After a suspension of the process, ctx
// ends later than the deadline: a reconcile that begins meanwhile could overlap with one of the next leader.
func (r *runner[K]) awaitLease(ctx, reconcileCtx context.Context) bool {
	for fence.Check(reconcileCtx) != nil {
		if retry.Sleep(ctx, leaseCheckInterval) != nil {
			return false
		}
	}
	return true
}

// reconcileKey reconciles an object, and logs and retries a failure. Its error is a panic of OnReconcile.
func (r *runner[K]) reconcileKey(ctx, reconcileCtx context.Context, key K, objects *Objects, object types.NamespacedName) error {
	end := func(error) {}
	if r.begin != nil {
		var ok bool
		if reconcileCtx, end, ok = r.begin(reconcileCtx, key); !ok {
			return nil
		}
	}
	written := &consistency.Writes{}
	defer r.finish(ctx, key, written)
	reconcileCtx = context.WithValue(reconcileCtx, objectsKey{}, objects)
	start := time.Now()
	err := errGoexit
	defer func() { end(err) }()
	after, err := r.callReconcile(consistency.WithWrites(reconcileCtx, written), key, object)
	result := ReconcileResult{Cluster: objects.Cluster, Key: object, Duration: time.Since(start), Err: err}
	if err == nil {
		result.After = after
	}
	if objects.Resource != nil {
		result.GVK = objects.Resource.APIResource().GVK
		result.GVR = objects.Resource.APIResource().GVR
	}
	panicErr := r.callOnReconcile(result)
	if err != nil {
		r.loggerOf(key).Error("reconcile failed", "failures", r.queue.NumRequeues(key)+1, "error", err)
		r.retry(key, err)
		return panicErr
	}
	r.queue.Forget(key)
	if after > 0 {
		r.queue.AddAfter(key, after)
	}
	return panicErr
}

// retry adds a key again after a failed reconcile.
func (r *runner[K]) retry(key K, err error) {
	var chosen *retryAfterError
	switch {
	case isTerminal(err):
		r.queue.Forget(key)
		r.queue.ForgetDelayed(key)
	case errors.As(err, &chosen):
		r.queue.ForgetDelayed(key) // of an earlier result, which may be due earlier
		r.queue.AddWithOptions(key, &workqueue.AddOptions{After: chosen.delay, RateLimited: true})
	default:
		r.queue.AddRateLimited(key)
	}
}

func (r *runner[K]) callReconcile(ctx context.Context, key K, object types.NamespacedName) (after time.Duration, err error) {
	defer contain(&err, "the reconcile", object)
	return r.reconcile(ctx, key)
}

func (r *runner[K]) callOnReconcile(result ReconcileResult) (err error) {
	if r.opts.OnReconcile == nil {
		return nil
	}
	defer contain(&err, "Options.OnReconcile", result.Key)
	r.opts.OnReconcile(result)
	return nil
}

// endError returns why ctx, derived from parent, has ended: parent's error if it is the cause, and ctx's cause otherwise.
func endError(parent, ctx context.Context) error {
	cause := context.Cause(ctx)
	if parent.Err() != nil && (errors.Is(cause, context.Cause(parent)) || errors.Is(cause, parent.Err())) {
		return retry.WithContextError(parent, cause)
	}
	return cause
}

// contain is a deferred function. After a panic it sets err to a [*cache.PanicError]. function names the user's callback; obj is
// its object or key, or nil.
func contain(err *error, function string, obj any) {
	if value := recover(); value != nil {
		*err = newPanicError(function, obj, value)
	}
}

// newPanicError must be called by a deferred function while the panic unwinds the stack.
func newPanicError(function string, obj, value any) error {
	switch obj := obj.(type) {
	case nil:
	case types.NamespacedName:
		function += ", for " + obj.String()
	case interface {
		GetNamespace() string
		GetName() string
	}:
		function += ", for " + cache.KeyOf(obj).String()
	default:
		function += fmt.Sprintf(", for a %T", obj)
	}
	return &cache.PanicError{Where: function, Value: value, Stack: debug.Stack()}
}

// errGoexit is the error of a goroutine ended by runtime.Goexit, for example by FailNow in tests.
var errGoexit = errors.New("run a controller: one of its goroutines was ended by runtime.Goexit")

// firstPanic keeps the first panic. A panic after the end of ctx is not the cause of the end.
type firstPanic struct {
	first atomic.Pointer[cache.PanicError]
}

// record keeps err if it is a panic, and returns it.
func (p *firstPanic) record(err error) error {
	if panicErr, ok := errors.AsType[*cache.PanicError](err); ok {
		p.first.CompareAndSwap(nil, panicErr)
	}
	return err
}

// join adds the first panic to cause, unless cause already wraps it.
func (p *firstPanic) join(cause error) error {
	if first := p.first.Load(); first != nil && !errors.Is(cause, first) {
		return fmt.Errorf("%w; meanwhile %w", cause, first)
	}
	return cause
}
