package cache

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Codec makes the packers of caches; see Options.Codec. Package cache/packed has one. It is safe for concurrent use.
type Codec[T any] interface {
	// NewPacker returns the packer of one cache.
	NewPacker() Packer[T]
}

// Packer packs the objects of one cache. Only one goroutine uses it at a time.
type Packer[T any] interface {
	// Pack returns the packed form of an object, or nil to keep the object as it is.
	Pack(obj *T) Packed[T]
}

// Packed is the packed form of an object, which it does not keep alive. It is safe for concurrent use.
type Packed[T any] interface {
	// Unpack returns an object that equals the packed one. Readers share it.
	Unpack() (*T, error)
}

// UnpackError reports that an object cannot be unpacked. Reads do not find the object, and Run ends with the error.
type UnpackError struct {
	// Cache is the path of the cache's resource.
	Cache string
	Err   error
}

func (e *UnpackError) Error() string {
	return fmt.Sprintf("cache %s: unpack an object: %v", e.Cache, e.Err)
}

// Unwrap returns the error of Unpack.
func (e *UnpackError) Unwrap() error { return e.Err }

// stored is an object of a cache: as it is, or packed. The zero value is none.
type stored[T any] struct {
	object *T
	packed *packedObject[T]
}

// packedObject is a packed object with the metadata that a cache reads without unpacking it.
type packedObject[T any] struct {
	Packed[T]
	metadata packedMetadata
}

func (s stored[T]) exists() bool { return s.object != nil || s.packed != nil }

func (c *Cache[T]) store(obj *T) stored[T] {
	if c.packer != nil {
		if packed := c.packer.Pack(obj); packed != nil {
			return stored[T]{packed: &packedObject[T]{packed, packMetadata(c.metaOf(obj))}}
		}
	}
	return stored[T]{object: obj}
}

// load returns an object, nil for none and for one that cannot be unpacked. It is called without the lock.
func (c *Cache[T]) load(s stored[T]) *T {
	if s.packed == nil {
		return s.object
	}
	obj, err := s.packed.Unpack()
	if err != nil {
		c.abort(&UnpackError{Cache: c.String(), Err: err})
		return nil
	}
	return obj
}

// loadAll returns the objects that match a selector, nil for all.
func (c *Cache[T]) loadAll(all []stored[T], selector labels.Selector) []*T {
	objects := make([]*T, 0, len(all))
	for _, s := range all {
		if selector != nil && !selector.Matches(c.labelsOf(s)) {
			continue
		}
		if obj := c.load(s); obj != nil {
			objects = append(objects, obj)
		}
	}
	return objects
}

func (c *Cache[T]) labelsOf(s stored[T]) labels.Labels {
	if s.packed != nil {
		_, _, set := s.packed.metadata.cut()
		return set
	}
	return labels.Set(c.metaOf(s.object).GetLabels())
}

func (c *Cache[T]) uidOf(s stored[T]) types.UID {
	if s.packed != nil {
		uid, _, _ := s.packed.metadata.cut()
		return uid
	}
	return c.metaOf(s.object).GetUID()
}

func (c *Cache[T]) versionOf(s stored[T]) (uid types.UID, resourceVersion string) {
	if s.packed != nil {
		uid, resourceVersion, _ = s.packed.metadata.cut()
		return uid, resourceVersion
	}
	meta := c.metaOf(s.object)
	return meta.GetUID(), meta.GetResourceVersion()
}

// packedMetadata are a UID, a resourceVersion and labels in one string: the labels' names in order, each followed by its value,
// all ended by a zero byte, which none of them contains: the API server validates them. It takes a fraction of a map's memory.
type packedMetadata string

func packMetadata(meta metaObject) packedMetadata {
	parts := []string{string(meta.GetUID()), meta.GetResourceVersion()}
	set := meta.GetLabels()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		parts = append(parts, name, set[name])
	}
	return packedMetadata(strings.Join(append(parts, ""), "\x00"))
}

func (m packedMetadata) cut() (uid types.UID, resourceVersion string, labels packedLabels) {
	first, rest, _ := strings.Cut(string(m), "\x00")
	resourceVersion, rest, _ = strings.Cut(rest, "\x00")
	return types.UID(first), resourceVersion, packedLabels(rest)
}

// packedLabels are the labels of packedMetadata, as [labels.Labels].
type packedLabels string

func (l packedLabels) Lookup(label string) (value string, exists bool) {
	for rest := string(l); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "\x00")
		value, rest, _ = strings.Cut(rest, "\x00")
		if name == label {
			return value, true
		}
	}
	return "", false
}

func (l packedLabels) Has(label string) bool {
	_, exists := l.Lookup(label)
	return exists
}

func (l packedLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}
