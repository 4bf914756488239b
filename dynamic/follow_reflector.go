package dynamic

import (
	"context"
	"errors"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errStopped is returned after the caller has left the loop over the changes.
var errStopped = errors.New("stopped")

// reflector runs a Follow: it lists and watches, handles the error (follow_recover.go), waits and repeats. It compares received
// objects with their emitted versions and emits the difference.
//
// A resourceVersion is adopted only after all changes up to it have been emitted. A reflector thus resumes without a gap. It
// drops repeated events by the object's version. During an initial list or relist there is no resourceVersion, and an error
// restarts the list. Only a complete list infers deletions.
type reflector struct {
	resource *Resource
	opts     FollowOptions
	yield    yieldFunc

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

// yieldFunc converts and emits a change, or the terminal error of Follow. obj is an *unstructured.Object if only its identity
// is known. yieldFunc returns false if the caller has left the loop.
type yieldFunc func(eventType watch.EventType, obj object, finalStateUnknown bool, err error) bool

type reflectorState int

const (
	stateConnecting  reflectorState = iota // before the server has accepted a request
	stateInitialList                       // Started
	stateSynced                            // Synced
	stateNotServed                         // NotServed
	stateReturned                          // Started again after NotServed
)

func (f *reflector) hasSynced() bool { return f.state >= stateSynced }

// objectReflector is a reflector for objects of type T.
type objectReflector[T any, P objectPointer[T]] struct {
	reflector
	newDecoder func() decoder[T]
}

// objectPointer is *unstructured.Object or *unstructured.Lazy.
type objectPointer[T any] interface {
	*T
	object
}

func follow[T any, P objectPointer[T]](ctx context.Context, r *Resource, opts *FollowOptions, newDecoder func() decoder[T], yield yieldFunc) {
	f := &objectReflector[T, P]{newDecoder: newDecoder}
	f.reflector = reflector{resource: r, opts: valueOf(opts), yield: yield, denials: retry.Denials{Grace: firstDenialGrace}}
	if f.known = f.opts.KnownObjects; f.known == nil {
		f.emitted = objectVersions{}
		f.known = f.emitted
	}
	if err := f.run(ctx); !errors.Is(err, errStopped) {
		yield("", nil, false, err)
	}
}

// run lists and watches until a terminal error occurs or the caller stops.
func (f *objectReflector[T, P]) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f.definition = newDefinition(ctx, f.resource)
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
func (f *objectReflector[T, P]) listAndWatch(ctx context.Context) error {
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
	ctx, idle := f.resource.withIdleTimeout(ctx)
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

func (f *objectReflector[T, P]) list(ctx context.Context) error {
	var version string
	ctx, idle := f.resource.withIdleTimeout(ctx)
	defer idle.cancel()
	paging := &PagingOptions{OnPage: func(meta metav1.ListMeta) { version = meta.ResourceVersion }}
	for obj, err := range listAs(ctx, f.resource.Paging(paging), f.listOptions(), f.newDecoder()) { //nolint:contextcheck // the lookup ends with the reflector's ctx
		idle.Stop()
		if err != nil {
			return idle.explain(err)
		}
		if err := f.handleEvent(newObjectEvent(watch.Added, P(obj))); err != nil {
			return err
		}
		idle.Reset(maxIdleTime)
	}
	if err := f.start(); err != nil {
		return err
	}
	return f.complete(version) //nolint:contextcheck // the lookup ends with the reflector's ctx
}

// watch handles the events of a watch. With initial events the idle timeout applies until their end.
func (f *objectReflector[T, P]) watch(ctx context.Context, opts *metav1.ListOptions, idle *idleTimeout, hasInitialEvents bool) error {
	onAccept := func() decoder[T] {
		if f.version != "" { // the stream is resumed, so the version is current
			f.setVersion(f.version)
		}
		if hasInitialEvents {
			idle.awaitInitialEvent(watch.Added)
		}
		return f.newDecoder()
	}
	for received, err := range watchAs(ctx, f.resource, opts, onAccept) { //nolint:contextcheck // the lookup ends with the reflector's ctx
		if err != nil {
			return idle.explain(err)
		}
		event := newObjectEvent(received.Type, P(received.Object))
		if f.version == "" && event.eventType == watch.Bookmark && !event.initialEventsDone {
			continue // a bookmark within the initial events changes neither version nor idle timeout
		}
		idle.Stop()
		if err := f.handleEvent(event); err != nil {
			return err
		}
		if hasInitialEvents && f.version == "" {
			idle.awaitInitialEvent(event.eventType)
		}
	}
	return nil
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
	return f.emit(Started, nil, false)
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
	return f.emit(Synced, nil, false)
}

func (f *reflector) setVersion(version string) {
	f.version = version
	if f.opts.OnProgress != nil {
		f.opts.OnProgress(version)
	}
}

func (f *reflector) emitInferredDelete(key objectKey, version objectVersion) error {
	obj := &unstructured.Object{}
	f.resource.setKind(obj)
	obj.SetNamespace(key.namespace.Value())
	obj.SetName(key.name)
	obj.SetUID(version.uid)
	obj.SetResourceVersion(version.resourceVersion)
	return f.emit(watch.Deleted, obj, true)
}

func (f *reflector) emit(eventType watch.EventType, obj object, finalStateUnknown bool) error {
	if !f.yield(eventType, obj, finalStateUnknown, nil) {
		return errStopped
	}
	return nil
}
