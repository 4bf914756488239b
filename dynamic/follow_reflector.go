package dynamic

import (
	"context"
	"errors"
	"io"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// reflector runs a Follow: it lists and watches, handles the error (follow_recover.go), waits and repeats. It compares received
// objects with their emitted versions and emits the difference.
//
// A resourceVersion is adopted only after all changes up to it have been emitted. A reflector thus resumes without a gap. It
// drops repeated events by the object's version. During an initial list or relist there is no resourceVersion, and an error
// restarts the list. Only a complete list infers deletions.
type reflector struct {
	endpoint *endpoint
	form     form
	opts     FollowOptions
	interner *jsonread.Interner // for all streams: a change reuses the previous version; nil for none
	// yield converts and emits a change. obj is a whole object in any form if only its identity is known. yield returns false if
	// the caller has left the loop.
	yield func(eventType watch.EventType, obj item, finalStateUnknown bool) bool

	state   reflectorState
	version string // resourceVersion to resume from; "" requires a relist
	known   KnownObjects
	emitted objectVersions         // same as known; nil if the caller keeps the objects
	missing map[objectKey]struct{} // known objects not received in the current relist; nil outside of a relist

	interruptions  int
	failures       int // consecutive short streams
	lastErr        error
	denials        retry.Denials
	decodeFailures decodeFailures
	watchList      watchListSupport
	unserved       unservedPeriod
	definition     *definition
}

type reflectorState int

const (
	stateConnecting  reflectorState = iota // before the server has accepted a request
	stateInitialList                       // Started
	stateSynced                            // Synced
	stateNotServed                         // NotServed
	stateReturned                          // Started again after NotServed
)

func (f *reflector) hasSynced() bool { return f.state >= stateSynced }

func newReflector(e *endpoint, form form, opts *FollowOptions) *reflector {
	f := &reflector{endpoint: e, form: form, opts: valueOf(opts), denials: retry.Denials{Grace: firstDenialGrace}}
	if f.opts.Intern {
		f.interner = jsonread.NewInterner()
	}
	if f.known = f.opts.KnownObjects; f.known == nil {
		f.emitted = objectVersions{}
		f.known = f.emitted
	}
	return f
}

// run lists and watches until a terminal error occurs or the caller stops.
func (f *reflector) run(ctx context.Context) error {
	if err := f.endpoint.rejectTables("watch", ""); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	f.definition = newDefinition(ctx, f.endpoint)
	defer f.definition.lookups.Wait()
	defer f.unserved.end()
	defer cancel()
	for {
		start := time.Now()
		err := f.listAndWatch(ctx)
		if errors.Is(err, errStopped) {
			return err
		}
		if err := f.recover(ctx, err, time.Since(start)); err != nil {
			return err
		}
	}
}

// listAndWatch watches until an error occurs or the server closes the stream; the latter returns nil. Without a resourceVersion
// the watch begins with all objects or follows a list.
func (f *reflector) listAndWatch(ctx context.Context) error {
	isRelist := f.version == ""
	isWatchList := isRelist && f.watchList.isUsable()
	if isRelist {
		f.beginRelist()
	}
	if isRelist && !isWatchList {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	// The server closes the stream after a random time, so that many watches do not reconnect at once. A longer stream is dead.
	seconds := 300 + int64(retry.Random(ctx, 299*time.Second)/time.Second)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+time.Minute)
	defer cancel()
	ctx, idle := f.endpoint.withIdleTimeout(ctx)
	defer idle.cancel()
	opts := f.listOptions()
	opts.ResourceVersion = f.version
	opts.AllowWatchBookmarks = true
	opts.TimeoutSeconds = &seconds
	if !isWatchList {
		idle.Stop() // nothing is sent while nothing changes
		return f.watch(ctx, opts, idle, false)
	}
	opts.SendInitialEvents = new(true)
	opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	err := f.watch(ctx, opts, idle, true)
	f.watchList.record(f.version != "", err)
	return err
}

func (f *reflector) listOptions() *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: f.opts.LabelSelector, FieldSelector: f.opts.FieldSelector}
}

func (f *reflector) list(ctx context.Context) error {
	var version string
	ctx, idle := f.endpoint.withIdleTimeout(ctx)
	defer idle.cancel()
	e := *f.endpoint
	e.pageOptions = PageOptions{OnPage: func(meta metav1.ListMeta) { version = meta.ResourceVersion }}
	err := e.list(ctx, f.form, f.interner, f.listOptions(), func(obj item) error { //nolint:contextcheck // the lookup ends with the reflector's ctx
		idle.Stop()
		if err := f.handleEvent(newObjectEvent(watch.Added, obj)); err != nil {
			return err
		}
		idle.Reset(maxIdleTime)
		return nil
	})
	idle.Stop()
	switch {
	case errors.Is(err, errStopped):
		return err
	case err != nil:
		return idle.explain(err)
	}
	if err := f.start(); err != nil {
		return err
	}
	return f.complete(version) //nolint:contextcheck // the lookup ends with the reflector's ctx
}

// watch handles the events of a watch. With initial events the idle timeout applies until their end.
func (f *reflector) watch(ctx context.Context, opts *metav1.ListOptions, idle *idleTimeout, hasInitialEvents bool) error {
	stream, err := f.endpoint.openWatch(ctx, f.form, f.interner, opts)
	if err != nil {
		return idle.explain(err)
	}
	defer stream.close()
	if f.version != "" { // the stream is resumed, so the version is current
		f.setVersion(f.version)
	}
	if hasInitialEvents {
		idle.awaitInitialEvent(watch.Added)
	}
	for {
		received, err := stream.next()
		if err == io.EOF { //nolint:errorlint // the end
			return nil
		}
		if err != nil {
			return idle.explain(err)
		}
		event := newObjectEvent(received.eventType, received.item)
		if f.version == "" && event.eventType == watch.Bookmark && !event.initialEventsDone {
			continue // a bookmark within the initial events changes neither version nor idle timeout
		}
		idle.Stop()
		if err := f.handleEvent(event); err != nil { //nolint:contextcheck // the lookup ends with the reflector's ctx
			return err
		}
		if hasInitialEvents && f.version == "" {
			idle.awaitInitialEvent(event.eventType)
		}
	}
}

// objectEvent is a watch event, or an item of a list as an ADDED event, with the metadata that a reflector needs.
type objectEvent struct {
	objectKey
	objectVersion
	eventType         watch.EventType
	initialEventsDone bool // a bookmark after the last object of a watch that begins with all objects
	object            item
}

func newObjectEvent(eventType watch.EventType, obj item) objectEvent {
	meta := obj.meta()
	return objectEvent{
		objectKey{unique.Make(meta.GetNamespace()), meta.GetName()}, objectVersion{meta.GetUID(), meta.GetResourceVersion()}, eventType,
		eventType == watch.Bookmark && meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", obj,
	}
}

// handleEvent emits the change of an event. After the initial events it adopts the event's resourceVersion.
func (f *reflector) handleEvent(event objectEvent) error {
	err := f.start()
	switch {
	case err != nil:
	case event.eventType == watch.Bookmark && f.version == "":
		return f.complete(event.resourceVersion)
	case event.eventType == watch.Bookmark:
	case event.eventType == watch.Deleted:
		err = f.handleDeleted(event)
	default:
		err = f.handleExisting(event)
	}
	if err == nil && f.version != "" && event.resourceVersion != "" { // some servers send events without a resourceVersion
		f.setVersion(event.resourceVersion)
	}
	return err
}

// start emits Started unless it has been emitted. Its call means that the server serves the resource.
func (f *reflector) start() error {
	f.unserved.end()
	switch f.state {
	case stateConnecting:
		f.state = stateInitialList
		f.denials.Grace = 0
	case stateNotServed:
		f.state = stateReturned
	default:
		return nil
	}
	return f.emit(Started, item{}, false)
}

// handleExisting emits an existing object, unless this version has been emitted.
func (f *reflector) handleExisting(event objectEvent) error {
	previous, isKnown := f.knownVersion(event.objectKey)
	delete(f.missing, event.objectKey)
	if isKnown && previous == event.objectVersion && event.resourceVersion != "" { // it may have changed
		return nil // keeps the strings of the emitted object
	}
	f.setKnown(event.objectKey, event.objectVersion)
	switch {
	case !isKnown:
		return f.emit(watch.Added, event.object, false)
	case previous.uid != event.uid && previous.uid != "": // KnownObjects may omit the UID
		if err := f.emitInferredDelete(event.objectKey, previous); err != nil {
			return err
		}
		return f.emit(watch.Added, event.object, false)
	default:
		return f.emit(watch.Modified, event.object, false)
	}
}

// handleDeleted emits a deletion, unless the object was never emitted.
func (f *reflector) handleDeleted(event objectEvent) error {
	if _, isKnown := f.knownVersion(event.objectKey); !isKnown {
		return nil
	}
	f.removeKnown(event.objectKey)
	return f.emit(watch.Deleted, event.object, false)
}

// complete ends the initial list or a relist at a resourceVersion. Known objects missing from it are deleted.
func (f *reflector) complete(version string) error {
	if err := f.deleteMissing(); err != nil {
		return err
	}
	f.setVersion(version)
	f.definition.startLookup()
	if f.state == stateSynced {
		return nil
	}
	f.state = stateSynced
	return f.emit(Synced, item{}, false)
}

func (f *reflector) setVersion(version string) {
	f.version = version
	if f.opts.OnProgress != nil {
		f.opts.OnProgress(version)
	}
}

func (f *reflector) emitInferredDelete(key objectKey, version objectVersion) error {
	obj := &unstructured.Object{}
	f.endpoint.setKind(obj)
	obj.SetNamespace(key.namespace.Value())
	obj.SetName(key.name)
	obj.SetUID(version.uid)
	obj.SetResourceVersion(version.resourceVersion)
	return f.emit(watch.Deleted, item{object: obj}, true)
}

func (f *reflector) emit(eventType watch.EventType, obj item, finalStateUnknown bool) error {
	if !f.yield(eventType, obj, finalStateUnknown) {
		return errStopped
	}
	return nil
}
