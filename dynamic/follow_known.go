package dynamic

import "k8s.io/apimachinery/pkg/types"

// object is the metadata of objects that a reflector reads.
type object[T any] interface {
	*T
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetAnnotations() map[string]string
}

// identity identifies one version of one object.
type identity struct {
	uid     types.UID
	version string
	read    uint32 // the last relist that contained it
}

type objectKey struct{ namespace, name string }

// deletedObject is a known object that a relist did not contain.
type deletedObject struct {
	objectKey
	identity
}

// known holds the identity of every object that has been emitted, so that each change is emitted once and deletions that
// were not reported are found.
type known[T any, P object[T]] struct {
	objects map[objectKey]identity
	relist  uint32
	// namespace is the one of the last new object, so that what follows in it has the same text.
	namespace string
}

func newKnown[T any, P object[T]]() known[T, P] {
	return known[T, P]{objects: map[objectKey]identity{}}
}

// begin begins a relist.
func (k *known[T, P]) begin() { k.relist++ }

// note stores the identity of an object. It returns the previous one, nil for none, and the new one.
func (k *known[T, P]) note(obj *T) (was *identity, is identity) {
	key := keyOf[T, P](obj)
	if last, ok := k.objects[key]; ok {
		was = &last
	} else if key.namespace == k.namespace {
		key.namespace = k.namespace
	} else {
		k.namespace = key.namespace
	}
	is = identity{uid: P(obj).GetUID(), version: P(obj).GetResourceVersion(), read: k.relist}
	k.objects[key] = is
	return was, is
}

// forget removes an object and reports whether it was known.
func (k *known[T, P]) forget(obj *T) bool {
	key := keyOf[T, P](obj)
	_, was := k.objects[key]
	delete(k.objects, key)
	return was
}

// missing forgets and returns the objects that the last relist did not contain.
func (k *known[T, P]) missing() []deletedObject {
	var gone []deletedObject
	for key, last := range k.objects {
		if last.read != k.relist {
			gone = append(gone, deletedObject{key, last})
			delete(k.objects, key)
		}
	}
	return gone
}

func keyOf[T any, P object[T]](obj *T) objectKey {
	return objectKey{P(obj).GetNamespace(), P(obj).GetName()}
}
