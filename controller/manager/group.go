package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/retry"
)

// function is a function with its name in errors.
type function struct {
	name string
	run  func(ctx context.Context) error
	// inner returns the names of running functions that this function has started; nil means none.
	inner func() []string
}

// call runs the function, and returns a panic as a [*cache.PanicError].
func (f function) call(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &cache.PanicError{Where: f.name, Value: value, Stack: debug.Stack()}
		}
	}()
	return f.run(ctx)
}

// group has functions with a common ctx.
type group struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when all have ended

	mu      sync.Mutex
	running []*function
	late    []error // after the first error or the end of ctx
}

// startGroup starts functions. fail receives each error before the end of their ctx. It reports whether the error ends the manager, or
// is only that of the manager's ctx.
func startGroup(parent context.Context, functions []function, fail func(error) bool) *group {
	ctx, cancel := context.WithCancelCause(parent)
	g := &group{cancel: cancel, done: make(chan struct{})}
	var all sync.WaitGroup
	for i := range functions {
		g.running = append(g.running, &functions[i])
	}
	for i := range functions {
		f := &functions[i]
		all.Go(func() {
			err := f.call(ctx)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.running = slices.DeleteFunc(g.running, func(other *function) bool { return other == f })
			if err == nil || ctx.Err() != nil && isContextError(ctx, err) {
				return
			}
			err = fmt.Errorf("%s: %w", f.name, err)
			if ctx.Err() != nil || !fail(err) {
				g.late = append(g.late, err)
			}
		})
	}
	go func() {
		all.Wait()
		close(g.done)
	}()
	return g
}

// isContextError reports whether err wraps nothing but ctx's error and its cause.
func isContextError(ctx context.Context, err error) bool {
	if isSame(err, context.Cause(ctx)) {
		return true
	}
	switch wrapper := err.(type) { //nolint:errorlint // each level is examined
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wrapper.Unwrap(), func(err error) bool { return !isContextError(ctx, err) })
	case interface{ Unwrap() error }:
		return isContextError(ctx, wrapper.Unwrap())
	default:
		return err != nil && errors.Is(err, ctx.Err())
	}
}

func isSame(a, b error) bool {
	return a != nil && reflect.TypeOf(a).Comparable() && a == b //nolint:errorlint // each level is examined
}

// stop ends the functions with a cause. It returns the errors of functions after the end of
// their ctx, and an error with the names of the functions still running after the timeout.
func (g *group) stop(cause error, timeout time.Duration) error {
	g.cancel(cause)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-g.done:
	case <-timer.C:
		late := fmt.Errorf("%s: not ended after %s", strings.Join(g.names(), ", "), timeout)
		return errors.Join(append(slices.Clone(g.errors()), late)...)
	}
	return errors.Join(g.errors()...)
}

// names returns the names of the running functions, and for a function that has started others theirs.
func (g *group) names() (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.running {
		var inner []string
		if f.inner != nil {
			inner = f.inner()
		}
		if inner == nil {
			inner = []string{f.name}
		}
		all = append(all, inner...)
	}
	return all
}

func (g *group) errors() []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.late
}

// syncedCache is a cache with the state of its sync.
type syncedCache struct {
	Cache

	name    string
	logger  *slog.Logger
	synced  chan struct{}         // closed after the sync
	lastErr atomic.Pointer[error] // of WaitForSync
}

// syncInterval is the time between two waits for a cache with an incomplete sync.
const syncInterval = time.Second

// waitForSync closes synced. After an error, the cache is asked again. A cache that lacks only rejected objects counts as synced.
func (c *syncedCache) waitForSync(ctx context.Context) error {
	for {
		err := c.WaitForSync(ctx)
		if ctx.Err() != nil {
			return retry.ContextError(ctx)
		}
		if isIncomplete(err) {
			c.logger.Warn("some objects are not known yet: the server rejects requests", "cache", c.name, "error", err)
			err = nil
		}
		if err == nil {
			close(c.synced)
			return nil
		}
		c.lastErr.Store(&err)
		if err := retry.Sleep(ctx, syncInterval); err != nil {
			return err
		}
	}
}

// isIncomplete reports whether a cache has synced except for rejected objects. Its error is a [*cache.RejectedError], or has the
// method Incomplete.
func isIncomplete(err error) bool {
	var rejected *cache.RejectedError
	var incomplete interface{ Incomplete() bool }
	return errors.As(err, &rejected) || errors.As(err, &incomplete) && incomplete.Incomplete()
}

// syncError returns why the cache has not synced, and nil after the sync.
func (c *syncedCache) syncError() error {
	select {
	case <-c.synced:
		return nil
	default:
	}
	if last := c.lastErr.Load(); last != nil {
		return fmt.Errorf("not synced: %w", *last)
	}
	return errors.New("not synced")
}

func cacheFunctions(caches []*syncedCache) (all []function) {
	for _, c := range caches {
		all = append(all, function{name: c.name, run: c.Run}, function{name: "sync of " + c.name, run: c.waitForSync})
	}
	return all
}
