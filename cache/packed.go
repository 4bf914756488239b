package cache

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Packed is the packed form of an object, see [Options].Pack. It does not reference the object. It is safe for concurrent use.
type Packed[T any] interface {
	// Unpack returns an object equal to the packed object. Readers share the result.
	Unpack() (*T, error)
}

// UnpackError reports a failed Unpack. Reads omit the object, and Run ends with the error.
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

// stored is a cached object, plain or packed. The zero value is no object.
type stored[T any] struct {
	object *T
	packed *packedObject[T]
}

// packedObject is a packed object with its metadata, readable without Unpack.
type packedObject[T any] struct {
	Packed[T]
	metadata packedMetadata
}

func (s stored[T]) exists() bool { return s.object != nil || s.packed != nil }

func (c *Cache[T]) store(obj *T) stored[T] {
	if c.opts.Pack != nil {
		if packed := c.opts.Pack(obj); packed != nil {
			return stored[T]{packed: &packedObject[T]{packed, packMetadata(c.metaOf(obj))}}
		}
	}
	return stored[T]{object: obj}
}

// load returns the object of s, or nil for the zero value and after an [UnpackError]. c.mu must not be held.
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

// loadAll returns the objects matching selector. A nil selector matches all.
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
		return &s.packed.metadata
	}
	return labels.Set(c.metaOf(s.object).GetLabels())
}

func (c *Cache[T]) uidOf(s stored[T]) types.UID {
	if s.packed != nil {
		uid, _ := s.packed.metadata.version()
		return uid
	}
	return c.metaOf(s.object).GetUID()
}

func (c *Cache[T]) versionOf(s stored[T]) (uid types.UID, resourceVersion string) {
	if s.packed != nil {
		return s.packed.metadata.version()
	}
	meta := c.metaOf(s.object)
	return meta.GetUID(), meta.GetResourceVersion()
}

// packedMetadata is uid \0 resourceVersion \0 (name \0 value \0)..., sorted by label name, in a fraction of the memory of a map.
// No field contains a zero byte: the API server validates them.
type packedMetadata string

func packMetadata(meta metaObject) packedMetadata {
	parts := []string{string(meta.GetUID()), meta.GetResourceVersion()}
	set := meta.GetLabels()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		parts = append(parts, name, set[name])
	}
	return packedMetadata(strings.Join(append(parts, ""), "\x00"))
}

func (m packedMetadata) version() (uid types.UID, resourceVersion string) {
	first, rest, _ := strings.Cut(string(m), "\x00")
	resourceVersion, _, _ = strings.Cut(rest, "\x00")
	return types.UID(first), resourceVersion
}

// Lookup implements [labels.Labels]. The pointer is converted to the interface without an allocation.
func (m *packedMetadata) Lookup(label string) (value string, exists bool) {
	_, rest, _ := strings.Cut(string(*m), "\x00")
	_, rest, _ = strings.Cut(rest, "\x00")
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "\x00")
		value, rest, _ = strings.Cut(rest, "\x00")
		if name == label {
			return value, true
		}
	}
	return "", false
}

func (m *packedMetadata) Has(label string) bool {
	_, exists := m.Lookup(label)
	return exists
}

func (m *packedMetadata) Get(label string) string {
	value, _ := m.Lookup(label)
	return value
}
