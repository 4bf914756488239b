package cache

import (
	"context"
	"fmt"
	"maps"

	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
)

// HasSynced reports whether the cache has received the initial list, except for rejected namespaces. It stays true while the
// resource is not served.
func (c *Cache[T]) HasSynced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.synced
}

// WaitForSync waits until the cache has all objects that existed when Run was called. It returns Run's error if Run ends first.
// If ctx ends first, it returns ctx's error with the last interruption. If the server rejects a part of Options.Namespaces, it
// returns a *[RejectedError] once the remaining namespaces have synced. Run continues then, and a later call may succeed.
func (c *Cache[T]) WaitForSync(ctx context.Context) error {
	var missing error
	err := c.wait(ctx, &waiter{condition: func() bool {
		missing = c.joinErrors(func(s *streamState) error {
			if s.synced {
				return nil
			}
			return s.rejected
		})
		return c.synced && c.hasSettled() && !c.isListing()
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

// WaitForStop waits until Run has ended and returns its error, or ctx's error if ctx ends first.
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

// ResourceVersion returns the newest resourceVersion of the cache's streams, "" before the initial list.
func (c *Cache[T]) ResourceVersion() (newest string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.streams {
		if newest == "" || resourceversion.IsNewer(s.resourceVersion, newest) {
			newest = s.resourceVersion
		}
	}
	return newest
}

// WaitForResourceVersion waits until the cache has reached a resourceVersion of its own resource. After a write, pass the
// resourceVersion of the written object. See https://kep.k8s.io/5504 for the comparison. Rejected namespaces are not awaited.
//
// If no selector or namespace of the source includes the written object, the cache receives no event for it and waits for the
// server's next bookmark, a minute or so. The response to a Delete of most resources is a Status, without a resourceVersion: use
// [Cache.Changes] to wait for a deletion.
func (c *Cache[T]) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	if err := c.checkComparable(resourceVersion); err != nil {
		return err
	}
	c.mu.RLock()
	streams := maps.Clone(c.streams)
	c.mu.RUnlock()
	for name, stream := range streams {
		hasReached := func() bool {
			return stream.rejected != nil || c.streams[name] != stream || !stream.listing && isReached(stream.resourceVersion, resourceVersion)
		}
		w := &waiter{condition: hasReached, stream: name, version: resourceVersion}
		if err := c.wait(ctx, w, "resourceVersion "+resourceVersion+" not reached"); err != nil {
			return err
		}
	}
	return nil
}

// checkComparable returns an error if resourceVersion has no order.
func (c *Cache[T]) checkComparable(resourceVersion string) error {
	if _, err := resourceversion.Compare(resourceVersion, resourceVersion); err != nil {
		return fmt.Errorf("cache %s: wait for resourceVersion %q: %w", c, resourceVersion, err)
	}
	return nil
}

// wait waits until w.condition holds. missing describes the condition in errors.
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
	if !isWaiting { // the condition holds, too
		return nil
	}
	return fmt.Errorf("cache %s: %s: %w", c, missing, cause)
}

// isReached reports whether resourceVersion >= target. It is false if they are not comparable.
func isReached(resourceVersion, target string) bool {
	order, err := resourceversion.Compare(resourceVersion, target)
	return err == nil && order >= 0
}
