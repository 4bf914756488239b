package reflector

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// Key identifies an object. The namespace is interned, because many objects share it.
type Key struct {
	Namespace unique.Handle[string]
	Name      string
}

// NewKey returns the key of an object. namespace is "" for a cluster-scoped object.
func NewKey(namespace, name string) Key { return Key{unique.Make(namespace), name} }

// Version identifies a version of an object.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// KnownObjects is the caller's store of objects. It must reflect each change before Emit returns.
type KnownObjects interface {
	// Version returns the stored UID and resourceVersion. Either may be "".
	Version(namespace, name string) (uid types.UID, resourceVersion string, found bool)
	// Keys returns the namespaces and names of all stored objects, in any order.
	Keys() iter.Seq2[string, string]
}

// versions maps emitted objects to their versions. Its strings are shared with the objects.
type versions map[Key]Version

func (v versions) Version(namespace, name string) (uid types.UID, resourceVersion string, found bool) {
	version, found := v[NewKey(namespace, name)]
	return version.UID, version.ResourceVersion, found
}

func (v versions) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key := range v {
			if !yield(key.Namespace.Value(), key.Name) {
				return
			}
		}
	}
}

// knownVersion returns the last emitted version of an object.
func (r *Reflector[T]) knownVersion(key Key) (version Version, found bool) {
	if r.emitted != nil {
		version, found = r.emitted[key]
		return version, found
	}
	version.UID, version.ResourceVersion, found = r.Known.Version(key.Namespace.Value(), key.Name)
	return version, found
}

// setKnown records an object's version, unless the caller keeps the objects.
func (r *Reflector[T]) setKnown(key Key, version Version) {
	if r.emitted != nil {
		r.emitted[key] = version
	}
}

func (r *Reflector[T]) removeKnown(key Key) {
	delete(r.emitted, key)
	delete(r.missing, key)
}

func (r *Reflector[T]) hasKnown() bool {
	for range r.Known.Keys() {
		return true
	}
	return false
}

// beginRelist marks all known objects as missing. Received objects are removed from missing.
func (r *Reflector[T]) beginRelist() {
	r.missing = map[Key]struct{}{}
	for namespace, name := range r.Known.Keys() {
		r.missing[NewKey(namespace, name)] = struct{}{}
	}
}

// deleteMissing emits a deletion for each object not received in the current relist.
func (r *Reflector[T]) deleteMissing() error {
	for key := range r.missing {
		version, found := r.knownVersion(key)
		r.removeKnown(key)
		if !found {
			continue
		}
		if err := r.emitInferredDelete(key, version); err != nil {
			return err
		}
	}
	r.missing = nil
	return nil
}
