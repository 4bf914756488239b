package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/shard"
)

// Trigger is a cache with a mapping from changed objects to keys to reconcile; see [Owns] and [Watches].
type Trigger struct {
	cache   triggerCache
	enqueue func(ctx context.Context, queue *workqueue.Queue[types.NamespacedName], log *slog.Logger) error
}

// triggerCache is the cache of a Trigger.
type triggerCache interface {
	sharding.Cache
	Shard() shard.Selector
}

// Watches returns a Trigger for the changes of c. A change reconciles keys(old state) and keys(new state). keys must be quick and
// only read the object. A panic in keys ends [Run]: it would miss changes from then on. An object that leaves the namespaces or the shard
// of c reconciles nothing. An update reconciles nothing unless all predicates return true.
func Watches[T any](c *cache.Cache[T], keys func(*T) []types.NamespacedName, predicates ...Predicate) Trigger {
	return watches(c, keys, predicates, func(cache.Change[T]) {})
}

// watches calls handle with each change before its keys are added.
func watches[T any](c *cache.Cache[T], keys func(*T) []types.NamespacedName, predicates []Predicate, handle func(cache.Change[T])) Trigger {
	return Trigger{c, func(ctx context.Context, queue *workqueue.Queue[types.NamespacedName], log *slog.Logger) error {
		low := &workqueue.AddOptions{Priority: lowPriority}
		synced := false
		served := servedLog{log: log, resource: c.String()}
		for change := range c.Changes(ctx) {
			served.handle(change.Type)
			handle(change)
			synced = synced || change.Type == dynamic.Synced
			if change.Type == cache.Removed {
				continue
			}
			if passed, err := Passes(predicates, change); err != nil {
				return err
			} else if !passed {
				continue
			}
			var opts *workqueue.AddOptions
			if isResync := change.Type == watch.Modified && change.Old == change.Object; !synced || isResync {
				opts = low
			}
			var all []types.NamespacedName
			for _, obj := range []*T{change.Old, change.Object} {
				if obj == nil {
					continue
				}
				found, err := callKeys(keys, obj)
				if err != nil {
					return err
				}
				all = append(all, found...)
			}
			for i, key := range all {
				if !slices.Contains(all[:i], key) { // a worker may have taken the first one already
					queue.AddWithOptions(key, opts)
				}
			}
		}
		return fmt.Errorf("a cache that triggers reconciles has stopped: %w", c.WaitForStop(ctx))
	}}
}

func callKeys[T any](keys func(*T) []types.NamespacedName, obj *T) (found []types.NamespacedName, err error) {
	defer contain(&err, "the keys function of a Trigger", obj)
	return keys(obj), nil
}

// Owns returns a Trigger for the changes of c. A change reconciles the object's controller. owner is a handle on the reconciled
// resource. Objects without a controller of this kind trigger nothing. predicates are those of [Watches]. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
func Owns[T any, P interface {
	cache.Object[T]
	GetOwnerReferences() []metav1.OwnerReference
}](c *cache.Cache[T], owner *dynamic.Resource, predicates ...Predicate) Trigger {
	kind := owner.APIResource().GVK.GroupKind()
	namespaced := owner.APIResource().Namespaced
	return Watches(c, func(obj *T) []types.NamespacedName {
		for _, reference := range P(obj).GetOwnerReferences() {
			group := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
			if reference.Controller == nil || !*reference.Controller || group != kind {
				continue
			}
			key := types.NamespacedName{Name: reference.Name}
			if namespaced {
				key.Namespace = P(obj).GetNamespace()
			}
			return []types.NamespacedName{key}
		}
		return nil
	}, predicates...)
}

// servedLog logs when the server stops serving a resource and when it serves it again.
type servedLog struct {
	log       *slog.Logger
	resource  string
	notServed bool
}

// handle logs a change to or from dynamic.NotServed.
func (l *servedLog) handle(change watch.EventType) {
	switch {
	case change == dynamic.NotServed:
		l.notServed = true
		l.log.Warn("the server does not serve the resource: its objects are kept", "resource", l.resource)
	case change == dynamic.Synced && l.notServed:
		l.notServed = false
		l.log.Info("the server serves the resource again", "resource", l.resource)
	}
}
