package cache

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// version is how far the cache has come, and wakes those who wait for it.
type version struct {
	at      string
	waiting map[chan struct{}]string
}

// reached says whether version at is not older than wanted. Versions that cannot be compared are not.
func reached(at, wanted string) bool {
	order, err := resourceversion.CompareResourceVersion(at, wanted)
	return err == nil && order >= 0
}

// advance records that the cache shows a resourceVersion. It may be lower than the last one: versions go back where etcd is
// restored from a backup.
func (c *Cache[T]) advance(at string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version.at = at
	for ready, wanted := range c.version.waiting {
		if reached(at, wanted) {
			close(ready)
			delete(c.version.waiting, ready)
		}
	}
}

// WaitFor waits until the cache shows at least what there was at a resourceVersion: that of an object that was just
// written, so that the cache shows the write. See https://kep.k8s.io/5504 for what may be compared. The version must be
// of the cache's own resource.
//
// A write that the cache does not hear of, since no selector or namespace of its source chooses the object, is waited for
// until the server says how far it is: a minute or so. Most resources answer a Delete with a Status, which has no
// version: wait for a deletion with [Cache.Changes].
func (c *Cache[T]) WaitFor(ctx context.Context, resourceVersion string) error {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, resourceVersion); err != nil {
		return fmt.Errorf("cache %s: wait for resourceVersion %q: %w", c.what(), resourceVersion, err)
	}
	ready := make(chan struct{})
	c.mu.Lock()
	if reached(c.version.at, resourceVersion) {
		c.mu.Unlock()
		return nil
	}
	if c.version.waiting == nil {
		c.version.waiting = map[chan struct{}]string{}
	}
	c.version.waiting[ready] = resourceVersion
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.version.waiting, ready)
		c.mu.Unlock()
	}()
	select {
	case <-ready:
		return nil
	case <-c.ended:
		return fmt.Errorf("cache %s: resourceVersion %s not reached: it has ended: %w", c.what(), resourceVersion, c.err)
	case <-ctx.Done():
		return fmt.Errorf("cache %s: resourceVersion %s not reached: %w", c.what(), resourceVersion, retry.ContextError(ctx))
	}
}
