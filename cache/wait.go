package cache

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
)

// HasSynced reports whether the cache has had all initial objects, but for those of rejected namespaces. It stays true while the
// resource is not served.
func (c *Cache[T]) HasSynced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.synced
}

// WaitForSync waits until the cache has all objects that existed when Run was called. It returns Run's error if Run ends
// before, and ctx's error, with the last interruption, if ctx does. If the server rejects some of Options.Namespaces, it
// returns a *[RejectedError] once the cache has the others; Run continues, and a later call may succeed.
func (c *Cache[T]) WaitForSync(ctx context.Context) error {
	var missing error
	err := c.wait(ctx, &waiter{condition: func() bool {
		missing = c.joinErrors(func(s *streamState) error {
			if s.synced {
				return nil
			}
			return s.rejected
		})
		return c.synced && c.hasSettled()
	}}, "not synced")
	switch {
	case err == nil && missing != nil:
		return &RejectedError{c.String(), missing}
	case err == nil:
		return nil
	case isClosed(c.stopped):
		return c.err
	case !c.started.Load():
		return fmt.Errorf("%w (Run has not been called)", err)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.lastErr != nil {
		return fmt.Errorf("%w; last interruption: %w", err, c.lastErr)
	}
	return err
}

// WaitForStop waits until Run has ended and returns its error, or ctx's if that ends before.
func (c *Cache[T]) WaitForStop(ctx context.Context) error {
	select {
	case <-c.stopped:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("cache %s: not stopped: %w", c, retry.ContextError(ctx))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// WaitForResourceVersion waits until the cache is at least as new as a resourceVersion of its own resource: with that of an
// object that was just written, until the cache has the write. See https://kep.k8s.io/5504 for the comparison. It does not wait for
// namespaces that the server rejects.
//
// If no selector or namespace of the source includes the written object, the cache has no event for it and waits for the
// server's next bookmark, a minute or so. Most resources answer a Delete with a Status, which has no version: wait for a
// deletion with [Cache.Changes].
func (c *Cache[T]) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	if err := c.checkComparable(resourceVersion); err != nil {
		return err
	}
	for name, stream := range c.streams {
		hasReached := func() bool { return stream.rejected != nil || isReached(stream.resourceVersion, resourceVersion) }
		w := &waiter{condition: hasReached, stream: name, version: resourceVersion}
		if err := c.wait(ctx, w, "resourceVersion "+resourceVersion+" not reached"); err != nil {
			return err
		}
	}
	return nil
}

// checkComparable returns an error if a resourceVersion cannot be compared with others.
func (c *Cache[T]) checkComparable(resourceVersion string) error {
	if _, err := resourceversion.Compare(resourceVersion, resourceVersion); err != nil {
		return fmt.Errorf("cache %s: wait for resourceVersion %q: %w", c, resourceVersion, err)
	}
	return nil
}

// wait waits until the condition of w holds. missing describes it in the error.
func (c *Cache[T]) wait(ctx context.Context, w *waiter, missing string) error {
	c.mu.Lock()
	if w.condition() {
		c.mu.Unlock()
		return nil
	}
	w.ready = make(chan struct{})
	c.waiters.add(w)
	c.mu.Unlock()
	var cause error
	select {
	case <-w.ready:
		return nil
	case <-c.stopped:
		cause = fmt.Errorf("stopped: %w", c.err)
	case <-ctx.Done():
		cause = retry.ContextError(ctx)
	}
	c.mu.Lock()
	isWaiting := c.waiters.remove(w)
	c.mu.Unlock()
	if !isWaiting { // ready, too
		return nil
	}
	return fmt.Errorf("cache %s: %s: %w", c, missing, cause)
}

// isReached reports whether a resourceVersion is at least target; false if they cannot be compared.
func isReached(resourceVersion, target string) bool {
	order, err := resourceversion.Compare(resourceVersion, target)
	return err == nil && order >= 0
}

// isNewer reports whether a resourceVersion is higher than another; false if they cannot be compared, as "" cannot.
func isNewer(resourceVersion, other string) bool {
	order, err := resourceversion.Compare(resourceVersion, other)
	return err == nil && order > 0
}
