package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
)

// knownObjects implements dynamic.KnownObjects with the objects of a cache, so names and versions are in memory only once. It
// reads without the lock: Run's goroutine is the only user of it and the only writer of the objects.
type knownObjects[T any] struct{ cache *Cache[T] }

// knownObjects returns nil for a custom source: a custom source may rename the objects of its handle.
func (c *Cache[T]) knownObjects() dynamic.KnownObjects {
	if _, ok := c.source.(*dynamic.Handle[T]); ok {
		return knownObjects[T]{c}
	}
	return nil
}

func (k knownObjects[T]) Version(namespace, name string) (uid types.UID, resourceVersion string, found bool) {
	e := k.cache.objects.get(types.NamespacedName{Namespace: namespace, Name: name})
	if e == nil {
		return "", "", false
	}
	uid, resourceVersion = k.cache.versionOf(e.stored)
	return uid, resourceVersion, true
}

func (k knownObjects[T]) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key := range k.cache.objects.all() {
			if !yield(key.Namespace, key.Name) {
				return
			}
		}
	}
}
