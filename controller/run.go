package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
)

// Reconcile brings the world in line with one object, or with its absence: it is told only which, reads what is there
// from the cache, and may be called any number of times. An error, or a panic, has it called again after a growing
// pause; with after it is called again then, even if something else has called for it before.
type Reconcile func(ctx context.Context, key cache.Key) (after time.Duration, err error)

// Options say how [Run] works. nil means the defaults.
type Options struct {
	// Workers is how many objects are reconciled at once; 0 means one. One object is never reconciled twice at once.
	Workers int
	// Triggers are other objects whose changes call for a reconcile; see [Owned] and [On].
	Triggers []Trigger
	// Grace is how long reconciles under way may go on once ctx has ended, until their own ctx ends; 0 means 30
	// seconds.
	Grace time.Duration
	// Queue sets the pauses after errors, and hears of depth, waiting times and retries.
	Queue QueueOptions
	// Reconciled hears of every reconcile: for metrics and logs. It is called by several goroutines at once. A panic in it
	// ends Run: nobody else would hear of it.
	Reconciled func(Reconciled)
}

// Reconciled is how one reconcile went.
type Reconciled struct {
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
// under way, and returns ctx's error; it returns the error of a cache that ends before, and a *[PanicError] where one of
// the functions in opts panics, but for reconcile, which is called again.
func Run[T any, P cache.Object[T]](ctx context.Context, c *cache.Cache[T], reconcile Reconcile, opts *Options) error {
	r := newRunning(opts, reconcile)
	own := On(c, func(obj *T) []cache.Key {
		return []cache.Key{{Namespace: P(obj).GetNamespace(), Name: P(obj).GetName()}}
	})
	return r.run(ctx, append([]Trigger{own}, r.opts.Triggers...))
}

// running is one Run.
type running struct {
	opts      Options
	reconcile Reconcile
	queue     *Queue[cache.Key]
	panics    panics
}

func newRunning(opts *Options, reconcile Reconcile) *running {
	r := &running{reconcile: reconcile}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Grace == 0 {
		r.opts.Grace = defaultGrace
	}
	r.queue = NewQueue[cache.Key](&r.opts.Queue)
	return r
}

func (r *running) run(ctx context.Context, triggers []Trigger) error {
	for _, each := range triggers {
		if err := each.sync(ctx); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
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
	return r.panics.beside(context.Cause(ctx))
}

// watch has a trigger call for reconciles until ctx ends or something breaks.
func (r *running) watch(ctx context.Context, each Trigger) (err error) {
	defer contain(&err, "a Trigger of a controller")
	return each.follow(ctx, r.queue, r.logger())
}

// work has the workers work until ctx ends, and then finish what they have in hand. It ends ctx by stop where one of them
// cannot go on.
func (r *running) work(ctx context.Context, stop context.CancelCauseFunc) {
	own, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
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

// one reconciles one object. Its error is not the reconcile's, but of who should hear how that went.
func (r *running) one(ctx context.Context, key cache.Key) error {
	defer r.queue.Done(key)
	begin := time.Now()
	after, err := r.contained(ctx, key)
	deaf := r.tell(Reconciled{Key: key, Took: time.Since(begin), Err: err})
	if err != nil {
		r.queue.AddRateLimited(key)
		return deaf
	}
	r.queue.Forget(key)
	if after > 0 {
		r.queue.AddAfter(key, after)
	}
	return deaf
}

func (r *running) tell(how Reconciled) (err error) {
	if r.opts.Reconciled == nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			err = panicked("Options.Reconciled, for "+how.Key.String(), value)
		}
	}()
	r.opts.Reconciled(how)
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
