package dynamic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/reflector"
	"github.com/anykind/anykind/internal/suspend"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// Types of a [Change] without an object. The others are watch.Added, watch.Modified and watch.Deleted.
const (
	// Started begins the initial list: all objects until Synced. It is repeated after NotServed.
	Started = reflector.Started
	// Synced ends the initial list. It is repeated after NotServed.
	Synced = reflector.Synced
	// NotServed reports that the server no longer serves the resource: its CustomResourceDefinition is deleted or replaced, this
	// version of it is not served any more, or an aggregated API is removed. The objects may exist, and be served in
	// another version, so they are not deleted. If the definition is known to be deleted or replaced, their deletions follow.
	// Once the resource is served again, Started, the differences and Synced follow.
	NotServed = reflector.NotServed
)

// Change is a change emitted by [Handle.Follow].
type Change[T any] struct {
	Type watch.EventType
	// Object is the current object, or its final state (Deleted); nil with Started, Synced and NotServed.
	Object *T
	// FinalStateUnknown is set with a deletion not reported by the API, such as a deletion while the connection was down.
	// Object then has only its kind, namespace, name, UID and the last known resourceVersion. A TableRow has it as its Object, and
	// neither columns nor cells.
	FinalStateUnknown bool
}

// FollowOptions configure [Handle.Follow]. The zero value selects all objects of the handle's namespace or namespaces.
type FollowOptions struct {
	// LabelSelector and FieldSelector select objects, as in ListOptions. An object that no longer matches is Deleted.
	LabelSelector, FieldSelector string
	// Shard selects the objects of a shard. A server with the feature gate ShardedListAndWatch sends only these
	// (https://kep.k8s.io/5866). Follow drops other objects itself, most of them before they are decoded, so all servers work.
	Shard shard.Selector
	// OnUnsharded is called once, when the server has sent an object outside of Shard: it lacks the feature.
	OnUnsharded func()
	// Intern lets objects share equal parts, such as labels, containers or managed fields, with further objects and with their
	// own previous versions. This saves most of the memory and time. Objects are then read-only: change a DeepCopy. A write
	// to a shared part changes every object with the part, and later versions. Intern has an effect on unstructured.Object
	// alone.
	Intern bool
	// KnownObjects has the objects kept by the caller, such as the objects of an earlier Follow. Known objects count as emitted:
	// the initial list emits the differences only. KnownObjects must reflect each change before the loop's body ends. Follow
	// then keeps no names and versions of its own. With nil, no object is known, and Follow keeps the names and versions of
	// emitted objects.
	KnownObjects KnownObjects
	// ResourceVersion continues an earlier Follow: KnownObjects has the objects at this version, which OnProgress has reported.
	// Started and Synced are emitted as soon as the server has accepted the request, then the changes since the version. If it has
	// expired, Follow lists the objects and emits the differences.
	ResourceVersion string
	// OnProgress is called with the resourceVersion up to which all changes have been emitted: after the initial list,
	// after each change, at intervals while nothing changes, and when the server has accepted to resume the stream.
	OnProgress func(resourceVersion string)
	// OnInterruption is called for every interruption of the stream, before the delay.
	OnInterruption func(Interruption)
	// Relist makes Follow list all objects with each received value, and emit the differences only. The list is by pages. Closing
	// the channel ends the requests.
	Relist <-chan struct{}
}

// Interruption describes why a stream of [Handle.Follow] ended and how Follow recovers.
type Interruption struct {
	// Err is why the stream ended; nil if the server closed it, as it does after some minutes.
	Err error
	// Relist reports that all objects must be read again to find the changes.
	Relist bool
	// Delay is the time before the next request, without jitter of up to a half. After 410 a relist of a synced stream waits up to two
	// seconds longer, because the resourceVersions of many clients expire at once.
	Delay time.Duration
	// Count is the number of interruptions, including this one.
	Count int
	// NotServed reports that all responses have been 404 for five seconds or longer. If the known objects are kept,
	// Err has the reason.
	NotServed bool
}

// Follow is a reflector: it lists, watches and relists after errors, and emits each change exactly once until ctx ends.
// The initial list is emitted between Started and Synced, then changes, for each object in the server's order. Follow
// requests a watch that begins with all objects (WatchList, https://kep.k8s.io/3157). If the server does not support
// WatchList, Follow lists by pages.
//
// It recovers from closed, broken and unreadable streams, restarts, overload and idle timeouts of the server, expired or
// too new resourceVersions, and expired credentials. It resumes from the last resourceVersion, or relists and emits only
// the differences: no change is repeated, and only intermediate states of an object may be missed. A deletion is emitted
// only if the API reported it or a complete list lacks the object.
//
// A resource is reported as [NotServed] once every response has been 404 for five seconds, because a starting server responds
// with 404 for a moment. Objects are kept, unless the CustomResourceDefinition seen by Follow does not exist any more or has a
// new UID: then their deletions follow with FinalStateUnknown. Follow reads the metadata of a custom resource's definition after
// the initial list. Without the right to read it, objects are kept. Follow continues when the resource is served again:
// immediately if [discovery.Client.Run] keeps the client's discovery current, and otherwise with the next request, every two or
// three seconds.
//
// Rows of [Handle.Tables] need their object's metadata, and begin with a list by pages.
//
// Follow ends with an error, once and last, when ctx ends or, before the first Synced, when the server rejects the request
// for good: apierrors.IsForbidden, for instance. A starting server, or an API server behind the rest of its cluster, denies
// requests or lacks resources for a moment. Before the error, 404 is therefore retried for five seconds, and 401 and 403 for two
// seconds, or for five seconds after an accepted request. Breaking out of the loop closes the connection. The loop's body may be
// slow, but servers close a stream without reads for minutes, and a closed stream costs a relist. Memory: the name, UID and
// resourceVersion of each object, unless the caller has KnownObjects.
func (h *Handle[T]) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		err := h.follow(ctx, h.codec.form(), valueOf(opts), func(event *reflector.Event[item]) error {
			change := Change[T]{Type: event.Type, FinalStateUnknown: event.FinalStateUnknown}
			if event.FinalStateUnknown {
				event.Object = h.partialObject(event.Key, event.Version)
			}
			var err error
			if event.Object != (item{}) {
				change.Object, err = h.codec.decode(&h.endpoint, event.Object)
			}
			if !yield(change, err) || err != nil {
				return errStopped
			}
			return nil
		})
		if !errors.Is(err, errStopped) {
			yield(Change[T]{}, err)
		}
	}
}

// follow is the state of a Follow.
type follow struct {
	source     objectSource
	definition definition
	reflector  *reflector.Reflector[item]
}

// follow runs a reflector whose events have no Object for an inferred deletion.
func (e *endpoint) follow(ctx context.Context, form form, opts FollowOptions, emit func(*reflector.Event[item]) error) error {
	suspension := suspend.From(ctx)
	f, isResumed := suspension.Resume().(*follow)
	if !isResumed {
		var err error
		if f, err = e.newFollow(ctx, form, &opts); err != nil {
			return err
		}
		f.reflector.CanSuspend = suspension != nil && opts.Relist == nil
	}
	isSuspended := false
	defer func() {
		if !isSuspended {
			f.definition.close()
		}
	}()
	f.setCallbacks(&opts, emit)
	err := f.reflector.Run(ctx)
	if isSuspended = errors.Is(err, suspend.Err); isSuspended {
		f.setCallbacks(&FollowOptions{}, nil)
		suspension.Suspend(f, f.reflector.Wait)
	}
	switch {
	case isSuspended, errors.Is(err, errStopped):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("follow %s: %w", e, err)
	case apierrors.IsNotFound(err):
		return f.definition.notServedError(err)
	default:
		return err
	}
}

func (e *endpoint) newFollow(ctx context.Context, form form, opts *FollowOptions) (*follow, error) {
	isTable := e.representation.kind == tableKind
	if isTable && e.representation.include == metav1.IncludeNone {
		return nil, e.invalid("follow", "", "rows without an object cannot be told apart (use Tables(metav1.IncludeMetadata))")
	}
	if opts.ResourceVersion != "" && opts.KnownObjects == nil {
		return nil, e.invalid("follow", "", "a ResourceVersion needs the KnownObjects of that version")
	}
	if opts.Shard.IsNothing() {
		return nil, e.invalid("follow", "", "the shard selects no object")
	}
	f := &follow{source: newObjectSource(e, form, opts), definition: newDefinition(ctx, e)}
	f.reflector = reflector.New(reflector.Options[item]{
		Source: &f.source, Known: opts.KnownObjects, ResourceVersion: opts.ResourceVersion, Evidence: &f.definition, Relist: opts.Relist,
		ListFirst: isTable, // rows are printed, in the order of a list
	})
	return f, nil
}

// setCallbacks sets the functions of the caller.
func (f *follow) setCallbacks(opts *FollowOptions, emit func(*reflector.Event[item]) error) {
	f.reflector.Emit = emit
	f.reflector.OnProgress = nil
	if report := opts.OnProgress; report != nil {
		f.reflector.OnProgress = func(resourceVersion string) error { report(resourceVersion); return nil }
	}
	f.reflector.OnInterruption = nil
	if report := opts.OnInterruption; report != nil {
		f.reflector.OnInterruption = func(i reflector.Interruption) {
			if i.NotServed {
				i.Err = f.definition.notServedError(i.Err)
			}
			report(Interruption(i))
		}
	}
}

// partialObject returns a partial object for the last known version of a deleted object.
func (e *endpoint) partialObject(key reflector.Key, version reflector.Version) item {
	obj := &unstructured.Object{}
	e.setKind(obj)
	obj.SetNamespace(key.Namespace.Value())
	obj.SetName(key.Name)
	obj.SetUID(version.UID)
	obj.SetResourceVersion(version.ResourceVersion)
	return item{object: obj}
}

// KnownObjects is the caller's store of objects for [Handle.Follow]; see FollowOptions. Follow calls its methods from its own
// goroutine, between changes.
type KnownObjects interface {
	// Version returns the UID and resourceVersion of the stored object, as received. Either is "" if it was not stored: a
	// received object is then MODIFIED. namespace is "" for a cluster-scoped object.
	Version(namespace, name string) (uid types.UID, resourceVersion string, found bool)
	// Keys returns the namespaces and names of all stored objects, in any order.
	Keys() iter.Seq2[string, string]
}
