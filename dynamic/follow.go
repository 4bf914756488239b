package dynamic

import (
	"context"
	"iter"
	"time"
	"unique"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Types of a [Change] without an object. The others are watch.Added, watch.Modified and watch.Deleted.
const (
	// Started begins the initial list: all objects until Synced. It is repeated after NotServed.
	Started watch.EventType = "STARTED"
	// Synced ends the initial list. It is repeated after NotServed.
	Synced watch.EventType = "SYNCED"
	// NotServed reports that the server no longer serves the resource: its CustomResourceDefinition is deleted or replaced, this
	// version of it is not served any more, or an aggregated API is removed. The objects may exist, and be served in
	// another version, so they are not deleted. If the definition is known to be deleted or replaced, their deletions follow.
	// Once the resource is served again, Started, the differences and Synced follow.
	NotServed watch.EventType = "NOTSERVED"
)

// Change is one change that [Resource.Follow] emits.
type Change[T any] struct {
	Type watch.EventType
	// Object is the current object, or its final state (Deleted); nil with Started, Synced and NotServed.
	Object *T
	// FinalStateUnknown is set with a deletion that the API did not report, such as one while the connection was down.
	// Object then has only its kind, namespace, name, UID and the last known resourceVersion.
	FinalStateUnknown bool
}

// FollowOptions configure [Resource.Follow]. The zero value selects all objects of the handle's namespace or namespaces.
type FollowOptions struct {
	// LabelSelector and FieldSelector select objects, as in ListOptions. An object that no longer matches is Deleted.
	LabelSelector, FieldSelector string
	// Intern lets objects share equal parts, such as labels, containers or managed fields, with each other and with their
	// own previous versions, which saves most of the memory and time. Objects are then read-only; change a DeepCopy. A write
	// to one object changes every other object that has the part, and later versions, which reuse it. Intern has no effect on
	// typed handles.
	Intern bool
	// KnownObjects has the objects that the caller keeps, such as those of an earlier Follow: they count as emitted, so that
	// the initial list emits only the differences to them. It must reflect each change before the loop's body ends, and Follow
	// keeps no names and versions of its own then. nil means no objects, of which Follow remembers what it has emitted.
	KnownObjects KnownObjects
	// OnProgress is called with the resourceVersion up to which all changes have been emitted: after the initial list,
	// after each change, at intervals while nothing changes, and when the server has accepted to resume the stream.
	OnProgress func(resourceVersion string)
	// OnInterruption is called for every interruption of the stream, before the delay.
	OnInterruption func(Interruption)
}

// Interruption describes why a stream of [Resource.Follow] ended and how Follow recovers.
type Interruption struct {
	// Err is why the stream ended; nil if the server closed it, as it does after some minutes.
	Err error
	// Relist reports that all objects must be read again to find what has changed.
	Relist bool
	// Delay is the time before the next request, without jitter of up to a half.
	Delay time.Duration
	// Count is the number of interruptions, including this one.
	Count int
	// NotServed reports that the server has answered only 404 for five seconds or longer. If the known objects are kept,
	// Err has the reason.
	NotServed bool
}

// Follow is a reflector: it lists, watches and relists after errors, and emits each change exactly once until ctx ends.
// The initial list is emitted between Started and Synced, then changes, in the server's order for any one object. Follow
// requests a watch that begins with all objects (WatchList, https://kep.k8s.io/3157), and lists by pages if the server
// does not support that.
//
// It recovers from closed, broken and unreadable streams, restarts, overload and idle timeouts of the server, expired or
// too new resourceVersions, and expired credentials. It resumes from the last resourceVersion, or relists and emits only
// the differences: no change is repeated, and only intermediate states of an object may be missed. A deletion is emitted
// only if the API reported it or a complete list lacks the object.
//
// A resource that the server no longer serves is reported as [NotServed] once the server has answered only 404 for five
// seconds, as a starting server may for a moment. Its objects are not deleted, unless the server also answers that the
// CustomResourceDefinition that Follow has seen does not exist or has another UID: then deletions follow with FinalStateUnknown. For
// that Follow reads the metadata of a custom resource's definition after the initial list; without the right to do so,
// objects are kept. Follow continues when the resource is served again: immediately if [discovery.Client.Run] keeps the
// client's discovery current, and otherwise with the next request, every two or three seconds.
//
// Follow ends with an error, once and last, when ctx ends or, before the first Synced, when the server rejects the request
// and would do so again: apierrors.IsForbidden, for instance. A starting server, or one that lags behind others of its
// cluster, denies requests or lacks resources for a moment. So 404 is retried for five seconds before that, and 401 and 403
// for two, or for five if the server has accepted a request before. Breaking
// out of the loop closes the connection. The loop's body may take its time, but the server closes a stream that is not
// read for minutes, which costs a relist. Memory: the name, UID and resourceVersion of each object, unless the caller has
// KnownObjects.
func (r *Resource) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[Change[unstructured.Object], error] {
	return func(yield func(Change[unstructured.Object], error) bool) {
		var interner *jsonread.Interner
		if valueOf(opts).Intern {
			interner = jsonread.NewInterner() // for all streams of this run: a change reuses the previous version
		}
		newDecoder := func() decoder[unstructured.Object] { return &objectDecoder{r, interner} }
		follow(ctx, r, opts, newDecoder, func(eventType watch.EventType, obj object, finalStateUnknown bool, err error) bool {
			unstructuredObj, _ := obj.(*unstructured.Object)
			return yield(Change[unstructured.Object]{eventType, unstructuredObj, finalStateUnknown}, err)
		})
	}
}

// Follow is as [Resource.Follow]. An object that does not fit T ends it.
func (t *TypedResource[T]) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		newDecoder := func() decoder[unstructured.Lazy] {
			return convertingDecoder[unstructured.Lazy](func(obj *unstructured.Lazy) (*unstructured.Lazy, error) { return obj, nil })
		}
		follow(ctx, t.Resource, opts, newDecoder, func(eventType watch.EventType, obj object, finalStateUnknown bool, err error) bool {
			change := Change[T]{Type: eventType, FinalStateUnknown: finalStateUnknown}
			lazy, _ := obj.(*unstructured.Lazy)
			if identity, isInferred := obj.(*unstructured.Object); isInferred {
				lazy, err = unstructured.As[unstructured.Lazy](identity)
			}
			if err == nil && lazy != nil {
				change.Object, err = t.convert(lazy)
			}
			return yield(change, err) && err == nil
		})
	}
}

// object is the metadata of objects that a reflector reads: of *unstructured.Object and *unstructured.Lazy.
type object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetAnnotations() map[string]string
}

// objectEvent is a watch event, or an item of a list as an ADDED event, with the metadata that a reflector needs.
type objectEvent struct {
	objectKey
	objectVersion
	eventType         watch.EventType
	initialEventsDone bool // a bookmark after the last object of a watch that begins with all objects
	object            object
}

func newObjectEvent(eventType watch.EventType, obj object) objectEvent {
	return objectEvent{
		objectKey{unique.Make(obj.GetNamespace()), obj.GetName()}, objectVersion{obj.GetUID(), obj.GetResourceVersion()}, eventType,
		eventType == watch.Bookmark && obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", obj,
	}
}
