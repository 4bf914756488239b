package fleet

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/retry"
)

// Change is a change of the objects of a cluster.
type Change[T any] struct {
	Cluster string
	cache.Change[T]
}

// Changes returns every object and then every change of all clusters, at the pace of the consumer, as [cache.Cache.Changes] does for
// each cluster: Synced and NotServed are changes of a single cluster. The objects of a cluster that leaves the fleet are delivered as
// cache.Removed. The sequence ends without an error when ctx ends, or after the end of Run once everything is delivered.
//
// Each loop takes a goroutine for each cluster.
func (c *Cache[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return c.changes(ctx, func() {})
}

// changes is Changes with a callback after each change of the clusters.
func (c *Cache[T]) changes(ctx context.Context, onUpdate func()) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		ctx, cancel := context.WithCancel(ctx)
		m := &merger[T]{cache: c, merged: make(chan Change[T]), followed: map[string]followed[T]{}}
		defer m.all.Wait()
		defer cancel()
		changed, stop := c.changed.subscribe()
		defer stop()
		var drained chan struct{} // closed after the last change, once the cache has stopped
		stopped := c.stopped
		for {
			select {
			case <-changed:
				m.update(ctx)
				onUpdate()
			case change := <-m.merged:
				if !yield(change) {
					return
				}
			case <-stopped:
				stopped = nil
				m.update(ctx)
				drained = make(chan struct{})
				go func() {
					m.all.Wait()
					close(drained)
				}()
			case <-drained:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// merger merges the changes of clusters for a consumer.
type merger[T any] struct {
	cache    *Cache[T]
	merged   chan Change[T]
	all      sync.WaitGroup
	followed map[string]followed[T]
}

// followed is a cluster with the end of its changes.
type followed[T any] struct {
	cluster *clusterCache[T]
	done    chan struct{}
}

// update starts a goroutine for each new cluster. A cluster that has been added again waits for the removals of its predecessor.
func (m *merger[T]) update(ctx context.Context) {
	current := m.cache.all()
	if len(m.followed) > len(current) {
		m.forget(current)
	}
	for _, cluster := range current {
		previous := m.followed[cluster.name]
		if previous.cluster == cluster {
			continue
		}
		next := followed[T]{cluster, make(chan struct{})}
		m.followed[cluster.name] = next
		m.all.Go(func() {
			defer close(next.done)
			if previous.done != nil {
				<-previous.done
			}
			for change := range cluster.cache.Changes(ctx) {
				select {
				case m.merged <- Change[T]{cluster.name, change}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// forget drops removed clusters whose changes have been delivered.
func (m *merger[T]) forget(current []*clusterCache[T]) {
	isCurrent := make(map[string]bool, len(current))
	for _, cluster := range current {
		isCurrent[cluster.name] = true
	}
	for name, f := range m.followed {
		select {
		case <-f.done:
			if !isCurrent[name] {
				delete(m.followed, name)
			}
		default:
		}
	}
}

// waitForStop waits until Run has ended and returns its error, or ctx's error if ctx ends first.
func (c *Cache[T]) waitForStop(ctx context.Context) error {
	select {
	case <-c.stopped:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("cache of %s: not stopped: %w", c.resource, retry.ContextError(ctx))
	}
}
