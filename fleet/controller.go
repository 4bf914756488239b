package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
)

// ReconcileFunc brings a cluster in line with an object, or with its absence, see controller.ReconcileFunc. ctx ends with the cause
// cache.ErrRemoved when the cluster leaves the fleet.
type ReconcileFunc func(ctx context.Context, key Key) (after time.Duration, err error)

// RunOptions configure [Run]. nil and zero values mean the defaults.
type RunOptions struct {
	// Options are those of controller.Run, except that 0 Workers are 16. Predicates drop updates of the reconciled objects in all
	// clusters. Options.Triggers must be empty, because the keys of a controller.Trigger have no cluster, and Sharding must be nil.
	controller.Options
	// Triggers are caches of related objects in the clusters. Their changes trigger reconciles.
	Triggers []Trigger
	// WorkersPerCluster is the maximum number of concurrent reconciles for a cluster, so that a slow cluster leaves workers to the rest;
	// 0 means a quarter of Workers.
	WorkersPerCluster int
}

const (
	defaultWorkers = 16
	// lowPriority is the priority of objects in the initial list and in a resync.
	lowPriority = -100
)

// Run reconciles every object of c, and reconciles it again whenever the object or an object of a Trigger changes, until ctx ends. All
// clusters share a work queue. Run is controller.Run otherwise, with these differences:
//
//   - The reconciles of a cluster start when all caches have synced this cluster. They do not wait for the rest of the clusters.
//   - Objects of a cluster that leaves the fleet, and objects that leave the shard of c, are not reconciled: they may exist. A change of a
//     Trigger may reconcile an object outside of the shard.
//   - Errors of a cluster are its state, see [Cache.Clusters].
//
// A reconcile writes through [Fleet.Client] with the key's cluster, and through TrackWrites of [Cache.Cluster] to read its own writes.
func Run[T any, P cache.Object[T]](ctx context.Context, c *Cache[T], reconcile ReconcileFunc, opts *RunOptions) error {
	o := *cmp.Or(opts, &RunOptions{})
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	own := Watches(c, func(cluster string, obj *T) []Key { return []Key{{cluster, cache.KeyOf(P(obj))}} }, o.Predicates...)
	o.Predicates = nil
	own.isOwn = true
	g := &gate{
		triggers: append([]Trigger{own}, o.Triggers...), limit: cmp.Or(o.WorkersPerCluster, max(1, o.Workers/4)),
		clusters: map[string]*clusterGate{},
	}
	keys := controller.Keys[Key]{
		Enqueue: g.enqueue, Admit: g.admit, Release: g.release,
		Object: func(key Key) (*controller.Objects, types.NamespacedName) {
			cluster := c.cluster(key.Cluster)
			if cluster == nil {
				return nil, key.NamespacedName
			}
			return cluster.objects.Load(), key.NamespacedName
		},
	}
	return controller.RunKeys(ctx, keys, func(ctx context.Context, key Key) (time.Duration, error) {
		cluster := c.cluster(key.Cluster)
		if cluster == nil {
			return 0, nil
		}
		return cluster.reconcile(ctx, key, reconcile)
	}, &o.Options)
}

// reconcile calls f with a ctx that ends when the cluster is removed. Nothing is repeated then.
func (c *cluster) reconcile(ctx context.Context, key Key, f ReconcileFunc) (after time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })() //nolint:contextcheck // two lifetimes
	after, err = f(ctx, key)
	if c.ctx.Err() != nil {
		return 0, nil
	}
	return after, err
}

// Trigger is a cache with a mapping from changed objects to keys to reconcile; see [Watches].
type Trigger struct {
	isOwn      bool // of the reconciled objects
	hasCluster func(cluster string) bool
	hasSynced  func(cluster string) bool
	enqueue    func(ctx context.Context, g *gate, t *Trigger) error
}

// Watches returns a Trigger for the changes of c. A change reconciles keys(old state) and keys(new state), in any
// cluster. keys must be quick and only read the object. A panic in keys ends [Run]. An update reconciles nothing unless all
// predicates return true.
func Watches[T any](c *Cache[T], keys func(cluster string, obj *T) []Key, predicates ...controller.Predicate) Trigger {
	return Trigger{
		hasCluster: func(name string) bool { return c.cluster(name) != nil },
		hasSynced: func(name string) bool {
			cluster := c.cluster(name)
			return cluster != nil && cluster.cache.HasSynced()
		},
		enqueue: func(ctx context.Context, g *gate, t *Trigger) error {
			synced := map[string]bool{}
			onUpdate := func() {
				maps.DeleteFunc(synced, func(name string, _ bool) bool { return !t.hasCluster(name) })
				if t.isOwn {
					g.forgetRemoved()
				}
			}
			for change := range c.changes(ctx, onUpdate) {
				if change.Type == dynamic.Synced {
					synced[change.Cluster] = true
					g.open(change.Cluster)
				}
				if passed, err := controller.Passes(predicates, change.Change); err != nil {
					return err
				} else if !passed {
					continue
				}
				priority := 0
				if isResync := change.Type == watch.Modified && change.Old == change.Object; !synced[change.Cluster] || isResync {
					priority = lowPriority
				}
				var all []Key
				for _, obj := range []*T{change.Old, change.Object} {
					if obj == nil {
						continue
					}
					found, err := callKeys(keys, change.Cluster, obj)
					if err != nil {
						return err
					}
					all = append(all, found...)
				}
				for i, key := range all {
					if !slices.Contains(all[:i], key) {
						g.add(key, priority, t.isOwn, change.Type == cache.Removed)
					}
				}
			}
			return fmt.Errorf("a cache that triggers reconciles has stopped: %w", c.waitForStop(ctx))
		},
	}
}

func callKeys[T any](keys func(string, *T) []Key, cluster string, obj *T) (found []Key, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &cache.PanicError{Where: "the keys function of a Trigger, for cluster " + cluster, Value: value, Stack: debug.Stack()}
		}
	}()
	return keys(cluster, obj), nil
}
