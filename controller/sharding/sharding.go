// Package sharding divides the keys of a controller among several processes: the members of a group. Each member works on the objects
// whose UID or namespace has a hash within its ranges, and no two members work on the same hash at the same time.
//
//	group, err := sharding.New(leases.Namespace("shop"), "widgets", nil)
//	if err != nil {
//		return err
//	}
//	widgets := cache.New(resource.AllNamespaces(), &cache.Options[Widget]{Shard: shard.New(shard.UID)})
//	return group.Run(ctx, func(ctx context.Context) error {
//		go widgets.Run(ctx)
//		return controller.Run(ctx, widgets, reconcile, &controller.Options{Sharding: group})
//	})
//
// The state is in Leases of one namespace. Each member has a Lease and renews it. The Lease with the name of the group has the
// assignment in an annotation: segments of hashes, each with its owner and the member to own it next. Members plan, hand over and take
// over by updates with a resourceVersion:
//
//   - The owner of a segment changes by an update of the owner itself, after its reconciles of the segment have ended; or, by any
//     member, after the owner's Lease was deleted by a member that had seen it without a renewal for LeaseDuration. The deletion has
//     the resourceVersion as its precondition, so either the renewal or the deletion succeeds. If a Lease was deleted in another way, the
//     members wait for LeaseDuration after they have noticed it.
//   - A member works on a segment until RenewDeadline after it sent its last successful renewal, followed by a consistent read of the
//     assignment with the segment. So it also notices in time that the assignment was deleted. A new assignment without owners is used
//     after LeaseDuration.
//   - A member whose Lease is gone stops its work, and joins again under a new name.
//
// See docs/SCALE.md.
package sharding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
)

// Options configure a group. nil and zero values mean the defaults. All members must agree on the field and the durations.
type Options struct {
	// By is the hashed field. "" means shard.UID.
	By shard.Field
	// Namespaces returns the namespaces to be divided, with By shard.Namespace: each weighs the same. nil means equal weights of all hashes:
	// similar names of namespaces are then divided badly. The member that plans calls it once a minute; see [ListNamespaces].
	Namespaces func(ctx context.Context) ([]string, error)
	// Identity is the holder of the member's Lease, for administrators. "" means the host's name.
	Identity string
	// LeaseDuration, RenewDeadline and RetryPeriod are as in leaderelection.Options: 15, 10 and 2 seconds by default.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// OnChange is called when the member, the members or the ranges change. It must be quick. A panic in it ends Run with a
	// *[cache.PanicError].
	OnChange func(Health)
	// Logger receives joins, losses and failed requests; nil means slog.Default().
	Logger *slog.Logger
}

// Group is this process's part of a group. It is safe for concurrent use.
type Group struct {
	leases *dynamic.Resource
	name   string
	opts   Options
	log    *slog.Logger

	started  atomic.Bool
	wake     chan struct{} // wakes the coordinator
	joined   chan struct{} // closed when the first member has joined
	failed   chan error    // receives the error that ends Run
	deadline *fence.Deadline
	workers  sync.WaitGroup // keep the shards of caches
	coordinator

	mu        sync.Mutex
	member    string       // the name of the member's Lease; "" while there is none
	owned     shard.Ranges // by the last round
	kept      shard.Ranges // by the newest assignment: owned without a next owner
	held      shard.Ranges // owned and kept: reconciles may begin
	draining  bool
	startFeed func(*feed) // with the ctx of Run's work; nil before and after it
	expiry    *time.Timer // at the deadline
	lastErr   error       // of the last round
	tasks     map[*task]struct{}
	taskEnded chan struct{} // closed and replaced when a task ends
	feeds     map[Cache]*feed
	fences    map[*Fence]struct{}
	events    []dynamic.Change[leaseObject] // not handled yet
	health    Health
	reported  Health // the last argument of OnChange
}

// New returns a group. leases is a handle on Leases of the group's namespace. name is the name of the group's Lease and a prefix of its
// members' names. New sends no request.
func New(leases *dynamic.Resource, name string, opts *Options) (*Group, error) {
	g := &Group{
		leases: leases, name: name, opts: *cmp.Or(opts, &Options{}),
		wake: make(chan struct{}, 1), joined: make(chan struct{}), failed: make(chan error, 1), coordinator: newCoordinator(),
		tasks: map[*task]struct{}{}, taskEnded: make(chan struct{}), feeds: map[Cache]*feed{}, fences: map[*Fence]struct{}{},
	}
	o := &g.opts
	o.By = cmp.Or(o.By, shard.UID)
	o.LeaseDuration = cmp.Or(o.LeaseDuration, 15*time.Second)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, 10*time.Second)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, 2*time.Second)
	if err := g.validate(); err != nil {
		return nil, fmt.Errorf("sharding %s %q: %w", leases, name, err)
	}
	if o.Identity == "" {
		o.Identity, _ = os.Hostname()
	}
	o.Identity = cmp.Or(o.Identity, "unknown")
	g.deadline = fence.NewDeadline(o.RenewDeadline)
	g.log = cmp.Or(o.Logger, slog.Default()).With("group", name)
	return g, nil
}

func (g *Group) validate() error {
	o := g.opts
	problems := validation.IsValidLabelValue(g.name)
	switch {
	case g.name == "" || len(problems) > 0:
		return fmt.Errorf("the name must be a label's value: %v", problems)
	case o.By != shard.UID && o.By != shard.Namespace:
		return fmt.Errorf("Options.By is neither %q nor %q: %q", shard.UID, shard.Namespace, o.By)
	}
	return fence.CheckDurations(o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
}

// Field returns the hashed field.
func (g *Group) Field() shard.Field { return g.opts.By }

// Run joins the group, lists its Leases, and then calls work once. It can be called once. The controllers in work need the group as
// controller.Options.Sharding. They work on the ranges of this process, which grow and shrink meanwhile, also to none.
//
// When ctx ends, the member leaves: no further reconcile begins, and its segments are handed over as soon as their reconciles have
// ended. The member's Lease is renewed until work returns. Then the Lease is deleted, and Run returns work's error.
//
// A member retries through restarts of the server. Terminal errors end Run before the member has joined. Run needs the verbs get, list,
// watch, create, update and delete on leases.
func (g *Group) Run(ctx context.Context, work func(ctx context.Context) error) error {
	if g.started.Swap(true) {
		return fmt.Errorf("sharding %s %q: it runs already, or has run (make another with New)", g.leases, g.name)
	}
	workCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	defer all.Wait() // work may panic: the segments are then not released
	defer stop()
	all.Go(func() { g.observe(background) })
	all.Go(func() { g.coordinate(background) })
	err := g.waitUntilJoined(ctx)
	if err == nil {
		failed := context.AfterFunc(workCtx, g.drain)
		all.Go(func() {
			select {
			case failure := <-g.failed:
				cancel(failure)
			case <-background.Done():
			}
		})
		err = g.runWork(workCtx, work)
		failed()
	}
	g.drain()
	stop()
	all.Wait()
	g.stopExpiry()
	g.leave(context.WithoutCancel(ctx))
	var panicErr *cache.PanicError
	if cause := context.Cause(workCtx); errors.As(cause, &panicErr) {
		return fmt.Errorf("sharding %s %q: %w", g.leases, g.name, cause)
	}
	return err
}

func (g *Group) runWork(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer g.workers.Wait()
	defer cancel()
	g.mu.Lock()
	g.startFeed = func(added *feed) { g.workers.Go(func() { g.feed(ctx, added) }) }
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.startFeed = nil
	}()
	return work(ctx)
}

func (g *Group) waitUntilJoined(ctx context.Context) error {
	select {
	case <-g.joined:
		return nil
	case err := <-g.failed:
		return fmt.Errorf("sharding %s %q: %w", g.leases, g.name, err)
	case <-ctx.Done():
		return fmt.Errorf("sharding %s %q: not joined: %w", g.leases, g.name, retry.ContextError(ctx))
	}
}

// fail ends Run with an error.
func (g *Group) fail(err error) {
	select {
	case g.failed <- err:
	default:
	}
}

// drain makes the member leave the group as soon as its reconciles have ended.
func (g *Group) drain() {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	g.signal()
}

func (g *Group) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// signal wakes the coordinator.
func (g *Group) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// errLost returns an error for work that was ended.
func errLost(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{leaderelection.ErrLeaseLost}, args...)...)
}

// callOnChange calls Options.OnChange if the health differs from its last argument.
func (g *Group) callOnChange() {
	health := g.Health()
	g.mu.Lock()
	isSame := health.isSame(g.reported)
	g.reported = health
	g.mu.Unlock()
	if isSame || g.opts.OnChange == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			g.fail(&cache.PanicError{Where: "Options.OnChange", Value: value, Stack: debug.Stack()})
		}
	}()
	g.opts.OnChange(health)
}
