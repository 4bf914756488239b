package dynamic

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// KnownObjects has the objects that the caller of [Resource.Follow] already keeps; see FollowOptions. Follow calls it from its
// own goroutine, between changes.
type KnownObjects interface {
	// Version returns the UID and the resourceVersion of an object as it was received, "" for what the caller has not kept:
	// a received object is then MODIFIED. namespace is "" for a cluster-scoped one.
	Version(namespace, name string) (uid types.UID, resourceVersion string, found bool)
	// Keys returns the namespaces and names of all objects, in any order.
	Keys() iter.Seq2[string, string]
}

// objectKey identifies an object. Many have a namespace in common, whose text is there once.
type objectKey struct {
	namespace unique.Handle[string]
	name      string
}

// objectVersion identifies one version of one object of a name.
type objectVersion struct {
	uid             types.UID
	resourceVersion string
}

// objectVersions are the versions of the objects that have been emitted. Its strings are those of the objects.
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

// knownVersion returns the version of an object that was emitted last.
func (f *reflector) knownVersion(key objectKey) (version objectVersion, found bool) {
	if f.emitted != nil {
		version, found = f.emitted[key]
		return version, found
	}
	version.uid, version.resourceVersion, found = f.known.Version(key.namespace.Value(), key.name)
	return version, found
}

// setKnown records an object's version, unless the caller keeps the object.
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

// beginRelist makes all known objects missing until they are received.
func (f *reflector) beginRelist() {
	f.missing = map[objectKey]struct{}{}
	for namespace, name := range f.known.Keys() {
		f.missing[objectKey{unique.Make(namespace), name}] = struct{}{}
	}
}

// deleteMissing emits the deletion of all objects that were not received in the current relist.
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
