package published

import (
	"context"
	"iter"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// informer is the source of a cache that begins with the state of the API server's watch cache, as client-go's informers do. Caches
// of this library begin with a consistent list: after a restart they are never behind.
type informer struct{ *dynamic.Resource }

// Follow implements cache.Source.
func (i informer) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		page, err := i.list(ctx)
		if err != nil {
			yield(dynamic.Change[unstructured.Object]{}, err)
			return
		}
		known := knownObjects{}
		changes := []dynamic.Change[unstructured.Object]{{Type: dynamic.Started}}
		for _, obj := range page.Items {
			known[obj.GetName()] = obj
			changes = append(changes, dynamic.Change[unstructured.Object]{Type: watch.Added, Object: obj})
		}
		for _, change := range append(changes, dynamic.Change[unstructured.Object]{Type: dynamic.Synced}) {
			if !yield(change, nil) {
				return
			}
		}
		rest := *opts
		rest.KnownObjects = known
		rest.ResourceVersion = page.ResourceVersion
		for change, err := range i.Resource.Follow(ctx, &rest) {
			if change.Type == dynamic.Started || change.Type == dynamic.Synced {
				continue
			}
			known.adopt(change)
			if !yield(change, err) {
				return
			}
		}
	}
}

// list returns the objects of the API server's watch cache. It repeats a failed request.
func (i informer) list(ctx context.Context) (*dynamic.Page[unstructured.Object], error) {
	for {
		page, err := i.ListPage(ctx, &metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			return page, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// knownObjects implements dynamic.KnownObjects for the objects of a namespace, by name.
type knownObjects map[string]*unstructured.Object

func (k knownObjects) adopt(change dynamic.Change[unstructured.Object]) {
	switch {
	case change.Type == watch.Deleted:
		delete(k, change.Object.GetName())
	case change.Object != nil:
		k[change.Object.GetName()] = change.Object
	}
}

// Version implements dynamic.KnownObjects.
func (k knownObjects) Version(_, name string) (uid types.UID, resourceVersion string, found bool) {
	obj, found := k[name]
	if !found {
		return "", "", false
	}
	return obj.GetUID(), obj.GetResourceVersion(), true
}

// Keys implements dynamic.KnownObjects.
func (k knownObjects) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name := range maps.Keys(k) {
			if !yield(namespace, name) {
				return
			}
		}
	}
}
