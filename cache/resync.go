package cache

import (
	"context"
	"time"
)

// resync tells every object to every consumer again, now and then.
func (c *Cache[T]) resync(ctx context.Context) {
	ticks := time.NewTicker(c.opts.Resync)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			c.mu.Lock()
			for each := range c.consumers {
				for key, e := range c.objects {
					each.note(key, e.object, e.object)
				}
			}
			c.mu.Unlock()
		}
	}
}
