package dynamic

import (
	"context"
	"iter"
	"time"

	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Types of a [Change] that is not about one object. The others are watch.Added, watch.Modified and watch.Deleted.
const (
	// Started begins the initial list: all objects until Synced. It is repeated after NotServed.
	Started watch.EventType = "STARTED"
	// Synced ends the initial list. It is repeated after NotServed.
	Synced watch.EventType = "SYNCED"
	// NotServed reports that the server no longer serves the resource: its CustomResourceDefinition is deleted, this
	// version of it is not served any more, or an aggregated API is removed. The objects may exist, and be served in
	// another version: what is known of them stays as it is. If the definition is known to be deleted, their deletions
	// follow. Once the resource is served again, Started, the differences and Synced follow.
	NotServed watch.EventType = "NOTSERVED"
)

// Change is one change that [Resource.Follow] emits.
type Change[T any] struct {
	Type watch.EventType
	// Object is the object as it is now, or its final state (Deleted); nil where the change is not about one object.
	Object *T
	// FinalStateUnknown is set with a deletion that the API did not report, such as one while the connection was down.
	// Object then has only its kind, namespace, name, UID and the resourceVersion that was last known.
	FinalStateUnknown bool
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
	// NotServed reports that the server has answered nothing but 404 for five seconds or longer. Err says why what is
	// known of the objects is kept, if it is.
	NotServed bool
}

// Follow tells what objects there are and then every change, for as long as ctx lasts: what there is between Started
// and Synced, then each change once, in the server's order for any one object. It asks for a stream that begins with
// the objects (WatchList, https://kep.k8s.io/3157) and where the server has none lists and watches.
//
// It recovers from what breaks: streams that end, die or bring what cannot be read, servers that restart, shed load or
// fall silent, resourceVersions that are too old (410) or too new, credentials that expire. It resumes from where it was,
// or reads all objects again and emits only what is different: nothing comes twice, and nothing is passed over but states
// that an object was in between. A deletion is emitted only if the API reported it or a complete list lacks the object.
//
// A resource that the server no longer serves is reported as [NotServed] once the server has answered nothing but 404 for
// five seconds, since one that starts does so for a moment. What is known of its objects is kept. If the server also
// answers that their CustomResourceDefinition does not exist, which Follow has seen before, deletions follow with
// FinalStateUnknown. For that Follow reads the metadata of a custom resource's definition when it has synced; without the
// right to do so, objects are kept. When the resource returns, Follow goes on: at once, where the client's discovery is
// kept current with [discovery.Client.Live], and otherwise at the next request, every two or three seconds.
//
// It ends with an error, once and last, when ctx ends or, before the first Synced, when the server rejects the request and
// would do so again: an apierrors.IsForbidden, for instance. 401 and 403 are retried for two seconds before that, or for
// five if the server has accepted a request before: one that starts denies every request for a moment. Breaking out of
// the loop closes the connection. The loop's body may take its time, but the server ends the stream of one who is minutes
// late, who then reads all objects again. What is kept of each object is its name, UID and resourceVersion.
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
			told := Change[T]{Type: change.Type, FinalStateUnknown: change.FinalStateUnknown}
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
