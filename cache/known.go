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
	if c.hasHandle() {
		return knownObjects[T]{c}
	}
	return nil
}

// hasHandle reports whether the source is a handle of package dynamic, or behaves as such; see [Source].
func (c *Cache[T]) hasHandle() bool {
	switch c.source.(type) {
	case *dynamic.Handle[T], interface{ HonorsKnownObjects() }:
		return true
	default:
		return false
	}
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

// partitionObjects is knownObjects for a partition: its own goroutine reads, while Run's goroutine may write objects of other partitions.
type partitionObjects[T any] struct{ *partition[T] }

func (p *partition[T]) knownObjects() dynamic.KnownObjects {
	if p.cache.hasHandle() {
		return partitionObjects[T]{p}
	}
	return nil
}

func (p partitionObjects[T]) Version(namespace, name string) (uid types.UID, resourceVersion string, found bool) {
	s := p.cache.lookUp(types.NamespacedName{Namespace: namespace, Name: name})
	if !s.exists() {
		return "", "", false
	}
	if uid, resourceVersion = p.cache.versionOf(s); !p.has(namespace, uid) {
		return "", "", false
	}
	return uid, resourceVersion, true
}

func (p partitionObjects[T]) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range p.keys() {
			if !yield(key.Namespace, key.Name) {
				return
			}
		}
	}
}

// keys returns the keys of the partition's objects.
func (p *partition[T]) keys() (keys []types.NamespacedName) {
	c := p.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	for key, e := range c.objects.in(p.namespace) {
		if p.has(key.Namespace, c.uidOf(e.stored)) {
			keys = append(keys, key)
		}
	}
	return keys
}
