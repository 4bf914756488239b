package dynamic

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// KnownObjects is the caller's store of objects for [Resource.Follow]; see FollowOptions. Follow calls its methods from its own
// goroutine, between changes.
type KnownObjects interface {
	// Version returns the UID and resourceVersion of the stored object, as received. Either is "" if it was not stored: a
	// received object is then MODIFIED. namespace is "" for a cluster-scoped object.
	Version(namespace, name string) (uid types.UID, resourceVersion string, found bool)
	// Keys returns the namespaces and names of all stored objects, in any order.
	Keys() iter.Seq2[string, string]
}

// objectKey identifies an object. The namespace is interned, because many objects share it.
type objectKey struct {
	namespace unique.Handle[string]
	name      string
}

// objectVersion identifies a version of an object.
type objectVersion struct {
	uid             types.UID
	resourceVersion string
}

// objectVersions maps emitted objects to their versions. Its strings are shared with the objects.
type objectVersions map[objectKey]objectVersion

func (v objectVersions) Version(namespace, name string) (uid types.UID, resourceVersion string, found bool) {
	version, found := v[objectKey{unique.Make(namespace), name}]
	return version.uid, version.resourceVersion, found
}

func (v objectVersions) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key := range v {
			if !yield(key.namespace.Value(), key.name) {
				return
			}
		}
	}
}

// knownVersion returns the last emitted version of an object.
func (f *reflector) knownVersion(key objectKey) (version objectVersion, found bool) {
	if f.emitted != nil {
		version, found = f.emitted[key]
		return version, found
	}
	version.uid, version.resourceVersion, found = f.known.Version(key.namespace.Value(), key.name)
	return version, found
}

// setKnown records an object's version, unless the caller keeps the objects.
func (f *reflector) setKnown(key objectKey, version objectVersion) {
	if f.emitted != nil {
		f.emitted[key] = version
	}
}

func (f *reflector) removeKnown(key objectKey) {
	delete(f.emitted, key)
	delete(f.missing, key)
}

func (f *reflector) hasKnown() bool {
	for range f.known.Keys() {
		return true
	}
	return false
}

// beginRelist marks all known objects as missing. Received objects are removed from missing.
func (f *reflector) beginRelist() {
	f.missing = map[objectKey]struct{}{}
	for namespace, name := range f.known.Keys() {
		f.missing[objectKey{unique.Make(namespace), name}] = struct{}{}
	}
}

// deleteMissing emits a deletion for each object not received in the current relist.
func (f *reflector) deleteMissing() error {
	for key := range f.missing {
		version, found := f.knownVersion(key)
		f.removeKnown(key)
		if !found {
			continue
		}
		if err := f.emitInferredDelete(key, version); err != nil {
			return err
		}
	}
	f.missing = nil
	return nil
}
