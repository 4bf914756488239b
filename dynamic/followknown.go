package dynamic

import "k8s.io/apimachinery/pkg/types"

// object is what a follower must be able to ask of what it reads.
type object[T any] interface {
	*T
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetAnnotations() map[string]string
}

// identity tells one state of one object from all others.
type identity struct {
	uid     types.UID
	version string
	read    uint32 // the last reading of all objects that found it
}

type objectKey struct{ namespace, name string }

// goneObject is one that was there and is not any more.
type goneObject struct {
	objectKey
	identity
}

// known is what has been told: it makes each change come once, and finds what went away unseen.
type known[T any, P object[T]] struct {
	objects map[objectKey]identity
	reading uint32
	// namespace is the one of the last new object, so that what follows in it has the same text.
	namespace string
}

func newKnown[T any, P object[T]]() known[T, P] {
	return known[T, P]{objects: map[objectKey]identity{}}
}

// begin begins a reading of all objects.
func (k *known[T, P]) begin() { k.reading++ }

// note remembers an object and tells what was known of it, nil for nothing, and what is now.
func (k *known[T, P]) note(obj *T) (was *identity, is identity) {
	key := keyOf[T, P](obj)
	if last, ok := k.objects[key]; ok {
		was = &last
	} else if key.namespace == k.namespace {
		key.namespace = k.namespace
	} else {
		k.namespace = key.namespace
	}
	is = identity{uid: P(obj).GetUID(), version: P(obj).GetResourceVersion(), read: k.reading}
	k.objects[key] = is
	return was, is
}

// forget says whether the object was known.
func (k *known[T, P]) forget(obj *T) bool {
	key := keyOf[T, P](obj)
	_, was := k.objects[key]
	delete(k.objects, key)
	return was
}

// unread forgets and returns what the last reading did not find.
func (k *known[T, P]) unread() []goneObject {
	var gone []goneObject
	for key, last := range k.objects {
		if last.read != k.reading {
			gone = append(gone, goneObject{key, last})
			delete(k.objects, key)
		}
	}
	return gone
}

func keyOf[T any, P object[T]](obj *T) objectKey {
	return objectKey{P(obj).GetNamespace(), P(obj).GetName()}
}
