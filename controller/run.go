package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reconcile brings the world in line with one object, or with its absence: it is told only which, reads what is there
// from the cache, and may be called any number of times. An error, or a panic, is logged and has it called again after a
// growing delay; with after it is called again then, even if something else has called for it before.
type Reconcile func(ctx context.Context, key cache.Key) (after time.Duration, err error)

// Options say how [Run] works. nil means the defaults.
type Options struct {
	// Workers is how many objects are reconciled at once; 0 means one. One object is never reconciled twice at once.
	Workers int
	// Triggers are other objects whose changes call for a reconcile; see [Owned] and [On].
	Triggers []Trigger
	// Grace is how long reconciles under way may go on once ctx has ended, until their own ctx ends; 0 means 30
	// seconds. There is none where the Lease of [Lead] is lost, before or meanwhile: their ctx ends at once.
	Grace time.Duration
	// Queue sets the pauses after errors, and hears of depth, waiting times and retries.
	Queue QueueOptions
	// Reconciled is called after every reconcile, for metrics, by several goroutines at once. A panic in it ends Run.
	Reconciled func(Reconciled)
	// Logger receives every reconcile that failed, with the kind, the key and the error, and the loss of a Lease; nil means
	// slog.Default(). slog.New(slog.DiscardHandler) is silent.
	Logger *slog.Logger
}

// Reconciled is the result of one reconcile.
type Reconciled struct {
	// GVK and GVR name the kind and the resource that Key is of. Both are zero where a cache's source is no handle of
	// package dynamic.
	GVK  schema.GroupVersionKind
	GVR  schema.GroupVersionResource
	Key  cache.Key
	Took time.Duration
	// Err is what it returned, or a [*PanicError].
	Err error
}

const (
	defaultGrace = 30 * time.Second
	// beginning is the priority of what was there at the start: what changes goes first.
	beginning = -100
)

// Run reconciles every object of a cache, and each again whenever it or what Triggers watch changes, until ctx ends. The
// caches run beside it; it begins when all of them are whole. When ctx ends it takes up no more, waits for what is
// under way, and returns ctx's error, with its cause; it returns the error of a cache that ends before, and a
// *[PanicError] where one of the functions in opts panics, but for reconcile, which is called again.
//
// Within [Lead], ctx is that of lead. When the Lease is lost, the ctx of every reconcile ends at once, with [ErrLeaseLost]
// as its cause: another process may reconcile then. The same holds for any ctx that ends with such a cause.
func Run[T any, P cache.Object[T]](ctx context.Context, c *cache.Cache[T], reconcile Reconcile, opts *Options) error {
	r := newRunning(opts, handleOf(c), reconcile)
	own := On(c, func(obj *T) []cache.Key {
		return []cache.Key{{Namespace: P(obj).GetNamespace(), Name: P(obj).GetName()}}
	})
	return r.run(ctx, append([]Trigger{own}, r.opts.Triggers...))
}

// handleOf returns the handle that a cache reads from, nil for another source.
func handleOf[T any](c *cache.Cache[T]) *dynamic.Resource {
	switch source := any(c.Source()).(type) {
	case *dynamic.Resource:
		return source
	case *dynamic.Typed[T]:
		return source.Resource
	default:
		return nil
	}
}

// running is one Run.
type running struct {
	opts      Options
	gvk       schema.GroupVersionKind
	gvr       schema.GroupVersionResource
	reconcile Reconcile
	queue     *Queue[cache.Key]
	panics    panics
}

func newRunning(opts *Options, of *dynamic.Resource, reconcile Reconcile) *running {
	r := &running{reconcile: reconcile}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Grace == 0 {
		r.opts.Grace = defaultGrace
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.Default()
	}
	if of != nil {
		r.gvk, r.gvr = of.Mapping().GVK, of.Mapping().GVR
		r.opts.Logger = r.opts.Logger.With("kind", r.gvk.GroupKind().String())
	}
	r.queue = NewQueue[cache.Key](&r.opts.Queue)
	return r
}

func (r *running) run(parent context.Context, triggers []Trigger) error {
	for _, each := range triggers {
		if err := each.sync(parent); err != nil {
			return retry.WithContextError(parent, err)
		}
	}
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	var watching sync.WaitGroup
	for _, each := range triggers {
		watching.Go(func() {
			err := errExited
			defer func() { stop(r.panics.note(err)) }()
			err = r.watch(ctx, each)
		})
	}
	r.work(ctx, stop)
	watching.Wait()
	return r.panics.beside(endOf(parent, ctx))
}

// watch has a trigger call for reconciles until ctx ends or something breaks.
func (r *running) watch(ctx context.Context, each Trigger) (err error) {
	defer contain(&err, "a Trigger of a controller")
	return each.follow(ctx, r.queue, r.opts.Logger)
}

// work has the workers work until ctx ends, and then finish what they have in hand. It ends ctx by stop where one of them
// cannot go on.
func (r *running) work(ctx context.Context, stop context.CancelCauseFunc) {
	own, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	defer onLeaseEnd(ctx, sync.OnceFunc(func() {
		cut(leaseEnd(ctx))
		r.opts.Logger.Warn("reconciles are canceled: the leader lease is not held", "error", leaseEnd(ctx))
	}))()
	r.queue.setOnPanic(func(err error) { stop(r.panics.note(err)) })
	var workers sync.WaitGroup
	for range max(r.opts.Workers, 1) {
		workers.Go(func() {
			err := errExited
			defer func() { stop(r.panics.note(err)) }()
			err = r.worker(ctx, own)
		})
	}
	<-ctx.Done()
	late := time.AfterFunc(r.opts.Grace, func() { cut(fmt.Errorf("%w: the grace of %s is over", context.Canceled, r.opts.Grace)) })
	defer late.Stop()
	workers.Wait()
	r.queue.ShutDown()
}

// worker reconciles what the queue hands out until ctx ends; each reconcile has own for its ctx.
func (r *running) worker(ctx, own context.Context) (err error) {
	defer contain(&err, "a worker of a controller")
	for {
		key, ok := r.queue.Get(ctx)
		if !ok {
			return nil
		}
		if err := r.one(own, key); err != nil {
			return err
		}
	}
}

// one reconciles one object. Its error is a panic of the Reconciled hook; the reconcile's own is logged and retried.
func (r *running) one(ctx context.Context, key cache.Key) error {
	defer r.queue.Done(key)
	begin := time.Now()
	after, err := r.contained(ctx, key)
	hookErr := r.report(Reconciled{GVK: r.gvk, GVR: r.gvr, Key: key, Took: time.Since(begin), Err: err})
	if err != nil {
		r.opts.Logger.Error("reconcile failed", "key", key.String(), "failures", r.queue.NumRequeues(key)+1, "error", err)
		r.queue.AddRateLimited(key)
		return hookErr
	}
	r.queue.Forget(key)
	if after > 0 {
		r.queue.AddAfter(key, after)
	}
	return hookErr
}

// report calls the Reconciled hook.
func (r *running) report(result Reconciled) (err error) {
	if r.opts.Reconciled == nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			err = panicked("Options.Reconciled, for "+result.Key.String(), value)
		}
	}()
	r.opts.Reconciled(result)
	return nil
}

// contained makes an error of a panic.
func (r *running) contained(ctx context.Context, key cache.Key) (after time.Duration, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked("the reconcile of "+key.String(), value)
		}
	}()
	return r.reconcile(ctx, key)
}
