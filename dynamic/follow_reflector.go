package dynamic

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errStopped reports that the caller left the loop over the changes.
var errStopped = errors.New("stopped")

// reflector is one Follow under way. It watches or lists, compares what it reads with what it has emitted, and emits the
// difference.
type reflector[T any, P object[T]] struct {
	resource *Resource
	opts     FollowOptions
	read     func() reader[T]
	// fromIdentity converts an object that has only its identity.
	fromIdentity func(*unstructured.Object) (*T, error)
	yield        func(Change[T], error) bool

	known     known[T, P]
	version   string // to resume from; "" requires a relist
	started   bool   // Started has been emitted, and NotServed not since
	synced    bool   // Synced has been emitted, and NotServed not since
	hasSynced bool   // Synced has been emitted at least once

	recovery
	lookUpDefinition func()
}

func followAs[T any, P object[T]](ctx context.Context, r *Resource, opts *FollowOptions, read func() reader[T], fromIdentity func(*unstructured.Object) (*T, error)) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		f := &reflector[T, P]{
			resource: r, read: read, fromIdentity: fromIdentity, yield: yield, known: newKnown[T, P](),
			recovery: recovery{definition: newDefinition(r)},
		}
		if opts != nil {
			f.opts = *opts
		}
		if err := f.run(ctx); !errors.Is(err, errStopped) {
			yield(Change[T]{}, err)
		}
	}
}

// run reads streams until it cannot recover or the caller stops.
func (f *reflector[T, P]) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer f.definition.wait()
	defer f.absence.end()
	defer cancel()
	f.lookUpDefinition = func() { f.definition.lookUp(ctx) }
	for {
		begin := time.Now()
		err := f.stream(ctx)
		if errors.Is(err, errStopped) {
			return err
		}
		if err := f.recover(ctx, err, time.Since(begin)); err != nil {
			return err
		}
	}
}

// stream reads until the server closes the stream, which is no error, or an error occurs. Without a version it starts
// with all objects.
func (f *reflector[T, P]) stream(ctx context.Context) error {
	relist, paged := f.version == "", f.watchList.unusable()
	if relist && paged {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	// The server closes the stream in time, spread so that many watches do not all come back at once. One that
	// stays silent for longer is dead.
	seconds := int64(300 + rand.IntN(300)) //nolint:gosec // spread, not secrecy
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+time.Minute)
	defer cancel()
	opts := f.listOptions()
	opts.ResourceVersion, opts.AllowWatchBookmarks, opts.TimeoutSeconds = f.version, true, &seconds
	ctx, idle := f.resource.limitSilence(ctx)
	defer idle.end()
	if relist && !paged {
		yes := true
		opts.SendInitialEvents, opts.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
		f.known.begin()
	} else {
		idle.pause() // where nothing changes, nothing is sent
	}
	return f.watch(ctx, opts, idle, relist && !paged)
}

// watch handles the events of one watch. With initial they begin with all objects.
func (f *reflector[T, P]) watch(ctx context.Context, opts *metav1.ListOptions, idle *idleTimeout, initial bool) error {
	for event, err := range watchAs(ctx, f.resource, opts, f.read) {
		if err != nil {
			err = idle.explain(err)
			if initial && f.version == "" {
				f.watchList.failed(err)
			}
			return err
		}
		if f.isPremature(event) {
			continue
		}
		idle.pause()
		if err := f.handleEvent(event); err != nil {
			return err
		}
		switch {
		case initial && f.version == "":
			idle.resume()
		case initial:
			f.watchList.succeeded()
		}
	}
	if initial && f.version == "" {
		f.watchList.failed(nil)
	}
	return nil
}

// isPremature reports whether event is a bookmark within the initial list. It neither moves the version nor shows that
// the server continues with the list.
func (f *reflector[T, P]) isPremature(event unstructured.Event[T]) bool {
	return f.version == "" && event.Type == watch.Bookmark && P(event.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true"
}

func (f *reflector[T, P]) listOptions() *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: f.opts.LabelSelector, FieldSelector: f.opts.FieldSelector}
}

// list reads all objects page by page, from a server that cannot send them with the watch.
func (f *reflector[T, P]) list(ctx context.Context) error {
	f.known.begin()
	var version string
	pages := f.resource.Paging(&Paging{Page: func(meta metav1.ListMeta) { version = meta.ResourceVersion }})
	ctx, idle := f.resource.limitSilence(ctx)
	defer idle.end()
	for obj, err := range listAs(ctx, pages, f.listOptions(), f.read()) {
		idle.pause()
		if err != nil {
			return idle.explain(err)
		}
		if err := f.handlePresent(obj); err != nil {
			return err
		}
		idle.resume()
	}
	if err := f.start(); err != nil {
		return err
	}
	return f.complete(version)
}

// handleEvent handles one event of the watch that is not premature.
func (f *reflector[T, P]) handleEvent(event unstructured.Event[T]) error {
	if err := f.start(); err != nil {
		return err
	}
	obj := P(event.Object)
	switch event.Type {
	case watch.Bookmark:
		if f.version == "" {
			return f.complete(obj.GetResourceVersion())
		}
	case watch.Deleted:
		if err := f.handleDeleted(event.Object); err != nil {
			return err
		}
	default:
		if err := f.handlePresent(event.Object); err != nil {
			return err
		}
	}
	if f.version == "" {
		return nil
	}
	if version := obj.GetResourceVersion(); version != "" { // without one there is nothing to resume from
		f.version = version
		f.progress()
	}
	return nil
}

// start emits Started unless it has been. The server serves the resource.
func (f *reflector[T, P]) start() error {
	f.absence.end()
	if f.started {
		return nil
	}
	f.started = true
	return f.emit(Change[T]{Type: Started})
}

// handlePresent emits an object that exists, unless this version of it has been emitted.
func (f *reflector[T, P]) handlePresent(obj *T) error {
	if err := f.start(); err != nil {
		return err
	}
	was, is := f.known.note(obj)
	switch {
	case was == nil:
		return f.emit(Change[T]{Type: watch.Added, Object: obj})
	case was.uid != is.uid:
		if err := f.emitInferred(P(obj).GetNamespace(), P(obj).GetName(), *was); err != nil {
			return err
		}
		return f.emit(Change[T]{Type: watch.Added, Object: obj})
	case was.version != is.version:
		return f.emit(Change[T]{Type: watch.Modified, Object: obj})
	default:
		return nil
	}
}

// handleDeleted emits a deletion, unless the object was never emitted.
func (f *reflector[T, P]) handleDeleted(obj *T) error {
	if f.known.forget(obj) {
		return f.emit(Change[T]{Type: watch.Deleted, Object: obj})
	}
	return nil
}

// complete ends a relist at version: known objects that it did not contain are deleted.
func (f *reflector[T, P]) complete(version string) error {
	if err := f.emitAllInferred(f.known.missing()); err != nil {
		return err
	}
	f.version = version
	f.progress()
	f.lookUpDefinition()
	if f.synced {
		return nil
	}
	f.synced, f.hasSynced = true, true
	return f.emit(Change[T]{Type: Synced})
}

func (f *reflector[T, P]) progress() {
	if f.opts.Progress != nil {
		f.opts.Progress(f.version)
	}
}

// emitNotServed reports that the resource is not served. What is known of its objects stays, and all of them are read
// again once it is served.
func (f *reflector[T, P]) emitNotServed() error {
	f.version, f.started, f.synced = "", false, false
	return f.emit(Change[T]{Type: NotServed})
}

// forgetAll emits the deletion of every known object.
func (f *reflector[T, P]) forgetAll() error {
	f.known.begin()
	return f.emitAllInferred(f.known.missing())
}

func (f *reflector[T, P]) emitAllInferred(deleted []deletedObject) error {
	for _, was := range deleted {
		if err := f.emitInferred(was.namespace, was.name, was.identity); err != nil {
			return err
		}
	}
	return nil
}

// emitInferred emits a deletion that the API did not report. Only the object's identity is known.
func (f *reflector[T, P]) emitInferred(namespace, name string, was identity) error {
	obj := &unstructured.Object{}
	obj.SetGroupVersionKind(f.resource.mapping.GVK)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(was.uid)
	obj.SetResourceVersion(was.version)
	converted, err := f.fromIdentity(obj)
	if err != nil {
		return err
	}
	return f.emit(Change[T]{Type: watch.Deleted, Object: converted, FinalStateUnknown: true})
}

func (f *reflector[T, P]) emit(change Change[T]) error {
	if !f.yield(change, nil) {
		return errStopped
	}
	return nil
}
