package controller

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Trigger watches objects whose changes call for a reconcile.
type Trigger struct {
	sync   func(ctx context.Context) error
	follow func(ctx context.Context, queue *Queue[cache.Key], log *slog.Logger) error
}

// On calls for a reconcile of the keys that an object of c leads to, whenever it changes: those it leads to now, and
// those it led to before. keys must be quick and do no more than look at the object; a panic in it ends [Run], since
// changes would be missed from then on.
func On[T any](c *cache.Cache[T], keys func(*T) []cache.Key) Trigger {
	return Trigger{sync: c.Sync, follow: func(ctx context.Context, queue *Queue[cache.Key], log *slog.Logger) error {
		priority, served := beginning, servedLog{log: log, resource: c.String()}
		for change := range c.Changes(ctx) {
			served.note(change.Type)
			if change.Type == dynamic.Synced {
				priority = 0
			}
			for _, obj := range []*T{change.Old, change.Object} {
				if obj == nil {
					continue
				}
				found, err := keysOf(keys, obj)
				if err != nil {
					return err
				}
				for _, key := range found {
					queue.AddWith(key, AddOptions{Priority: priority})
				}
			}
		}
		return fmt.Errorf("a cache that calls for reconciles has ended: %w", c.Wait(ctx))
	}}
}

// keysOf makes an error of a panic.
func keysOf[T any](keys func(*T) []cache.Key, obj *T) (found []cache.Key, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked("the keys function of a Trigger, for "+nameOf(obj), value)
		}
	}()
	return keys(obj), nil
}

// nameOf is what an object of any type is called in errors.
func nameOf(obj any) string {
	if named, ok := obj.(interface {
		GetNamespace() string
		GetName() string
	}); ok {
		return cache.Key{Namespace: named.GetNamespace(), Name: named.GetName()}.String()
	}
	return fmt.Sprintf("a %T", obj)
}

// Owned calls for a reconcile of the object that controls one of c's objects, whenever that changes. owner is a handle
// on the resource that is reconciled. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
func Owned[T any, P interface {
	cache.Object[T]
	GetOwnerReferences() []metav1.OwnerReference
}](c *cache.Cache[T], owner *dynamic.Resource) Trigger {
	kind, namespaced := owner.Mapping().GVK.GroupKind(), owner.Mapping().Namespaced
	return On(c, func(obj *T) []cache.Key {
		for _, reference := range P(obj).GetOwnerReferences() {
			group := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
			if reference.Controller == nil || !*reference.Controller || group != kind {
				continue
			}
			key := cache.Key{Name: reference.Name}
			if namespaced {
				key.Namespace = P(obj).GetNamespace()
			}
			return []cache.Key{key}
		}
		return nil
	})
}
