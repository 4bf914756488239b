package dynamic

import (
	"context"
	"iter"
	"time"

	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// What a [Change] tells besides watch.Added, watch.Modified and watch.Deleted, which are about one object.
const (
	// Started says that what there is begins: the changes up to Synced are that. It comes again after Lost.
	Started watch.EventType = "STARTED"
	// Synced says that all there was has been told.
	Synced watch.EventType = "SYNCED"
	// Lost says that the server no longer serves the resource, whose CustomResourceDefinition is gone, perhaps. Its
	// objects were told Deleted before.
	Lost watch.EventType = "LOST"
)

// Change is one thing that [Resource.Follow] tells.
type Change[T any] struct {
	Type watch.EventType
	// Object is the object as it is now, or was at last (Deleted); nil where the change is about none.
	Object *T
	// Unseen says of a Deleted that the server was not heard to delete it, but did while the connection was down:
	// Object then has only its kind, namespace, name, UID and the resourceVersion that was last known.
	Unseen bool
}

// FollowOptions say what to follow. The zero value follows all objects of the handle's namespace or namespaces.
type FollowOptions struct {
	// LabelSelector and FieldSelector choose objects, as in ListOptions. One that no longer matches is Deleted.
	LabelSelector, FieldSelector string
	// Shared has objects share what is equal in them, with each other and with their own earlier states: of the labels,
	// containers or managed fields that many have, there is one. It takes a part of the memory and time, and what is
	// told must then not be changed; a DeepCopy may. Typed handles do not share.
	Shared bool
	// Progress hears how far the stream has come: to the resourceVersion of everything told so far, once all objects have
	// been read, then behind each change, and now and then while nothing changes.
	Progress func(resourceVersion string)
	// Interrupted hears of every break in the stream, before Follow waits to mend it.
	Interrupted func(Interruption)
}

// Interruption is a break in the stream, which Follow mends.
type Interruption struct {
	// Err is why the stream broke; nil where the server closed it, as it does after some minutes.
	Err error
	// Relist says that what changed meanwhile can be found only by reading all objects again.
	Relist bool
	// Wait is how long Follow waits before it asks again; up to half as long again, so that many do not come back at once.
	Wait time.Duration
	// Count is how many there have been, this one included.
	Count int
}

// Follow tells what objects there are and then every change, for as long as ctx lasts: what there is between Started
// and Synced, then each change once, in the server's order for any one object. It asks for a stream that begins with
// the objects (WatchList, https://kep.k8s.io/3157) and where the server has none lists and watches.
//
// It mends what breaks: streams that end, die or bring what cannot be read, servers that restart, shed load or fall
// silent, resourceVersions that are too old (410) or too new, credentials that expire. It goes on from where it was, or
// reads all objects again and tells only what is different: nothing comes twice, and nothing is passed over but states that
// an object was in between. A resource that the server no longer serves is told as Lost once the server has answered
// nothing but 404 for five seconds, since one that starts does so for a moment; when it returns, Follow goes on.
//
// It ends with an error, once and last, when ctx ends or, before the first Synced, when the server refuses: an
// apierrors.IsForbidden, for instance, or any other answer that asking again would not change. Breaking out of the loop
// closes the connection. The loop's body may take its time, but the server ends the stream of one who is minutes late,
// who then reads all objects again. What is kept of each object is its name, UID and resourceVersion.
func (r *Resource) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[Change[unstructured.Object], error] {
	return func(yield func(Change[unstructured.Object], error) bool) {
		read := r.objects
		if opts != nil && opts.Shared {
			parts := unstructured.NewParts() // for all streams of this run, so that a change shares with what was before
			read = func() reader[unstructured.Object] { return r.sharing(parts) }
		}
		followAs(ctx, r, opts, read, func(obj *unstructured.Object) (*unstructured.Object, error) { return r.inForm(obj), nil })(yield)
	}
}

// Follow is as [Resource.Follow]. An object that does not fit T ends it.
func (t *Typed[T]) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		for change, err := range followAs(ctx, t.Resource, opts, lazies, lazyOf) {
			told := Change[T]{Type: change.Type, Unseen: change.Unseen}
			if err == nil && change.Object != nil {
				told.Object, err = t.made(change.Object)
			}
			if !yield(told, err) || err != nil {
				return
			}
		}
	}
}

// lazies reads objects as they are.
func lazies() reader[unstructured.Lazy] {
	return through(func(obj *unstructured.Lazy) (*unstructured.Lazy, error) { return obj, nil })
}

func lazyOf(obj *unstructured.Object) (*unstructured.Lazy, error) {
	data, err := unstructured.Encode(obj)
	if err != nil {
		return nil, err
	}
	return unstructured.NewLazy(data)
}
