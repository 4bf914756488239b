package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	running []string
	late    []error // after the end of ctx
}

// startGroup starts functions. fail gets the first error before the end of their ctx.
func startGroup(parent context.Context, functions []function, fail context.CancelCauseFunc) *group {
	ctx, cancel := context.WithCancelCause(parent)
	g := &group{cancel: cancel, done: make(chan struct{})}
	var all sync.WaitGroup
	for _, f := range functions {
		g.running = append(g.running, f.name)
	}
	for _, f := range functions {
		all.Go(func() {
			err := f.call(ctx)
			g.mu.Lock()
			defer g.mu.Unlock()
			i := slices.Index(g.running, f.name)
			g.running = slices.Delete(g.running, i, i+1)
			switch {
			case err == nil:
			case ctx.Err() == nil:
				fail(fmt.Errorf("%s: %w", f.name, err))
			case !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)):
				g.late = append(g.late, fmt.Errorf("%s: %w", f.name, err))
			}
		})
	}
	go func() {
		all.Wait()
		close(g.done)
	}()
	return g
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
		g.mu.Lock()
		defer g.mu.Unlock()
		return fmt.Errorf("%s: not ended after %s", strings.Join(g.running, ", "), timeout)
	}
	return errors.Join(g.errors()...)
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
		all = append(all, function{c.name, c.Run}, function{"sync of " + c.name, c.waitForSync})
	}
	return all
}
