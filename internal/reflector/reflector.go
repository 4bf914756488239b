// Package reflector implements list and watch for Follow, Wait, discovery and logs: a [Run] keeps its consumer up to date with the
// objects of a [Source]. It owns the states, the recovery from errors (recover.go), idle timeouts (idle.go), the comparison with
// known objects (known.go) and periods of 404 (not_served.go). The objects themselves are opaque.
//
// A resourceVersion is adopted only after all changes up to it have been emitted. A reflector thus resumes without a gap. It
// drops repeated events by the object's version. During an initial list or relist there is no resourceVersion, and an error
// restarts the list. Deletions are inferred from a complete list, from a new UID, and from a deleted or replaced definition only.
package reflector

import (
	"cmp"
	"context"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/suspend"
)

// Types of events without an object.
const (
	Started   watch.EventType = "STARTED"   // the initial list begins
	Synced    watch.EventType = "SYNCED"    // the initial list is complete
	NotServed watch.EventType = "NOTSERVED" // Started and Synced follow when the resource is served again
)

// Event is an event of a watch, an item of a list as an ADDED event, or an emitted change. Events are large, so they are passed as
// pointers, valid during the call.
type Event[T any] struct {
	Key
	Version
	Type              watch.EventType
	InitialEventsDone bool // a bookmark after the last object of a watch that begins with all objects
	// FinalStateUnknown is set with an inferred deletion. Object is then the zero value.
	FinalStateUnknown bool
	// IsUnselected is set with an object that the source does not select. It is not emitted.
	IsUnselected bool
	Object       T
}

// Source sends the requests of a reflector and decodes their responses.
type Source[T any] interface {
	// List calls handle with an ADDED event for every object and returns the list's resourceVersion. It returns errors of handle.
	List(ctx context.Context, handle func(*Event[T]) error) (resourceVersion string, err error)
	// Watch opens a watch. opts has all parameters but selectors.
	Watch(ctx context.Context, opts metav1.ListOptions) (Stream[T], error)
	// IdleError returns the error of an idle timeout.
	IdleError(cause error) error
}

// Stream is an accepted watch.
type Stream[T any] interface {
	// Next sets event. It returns io.EOF itself when the server has closed the stream. An error may be an [InvalidEventError].
	Next(event *Event[T]) error
	Close()
}

// Options configure [Run]. Source and Emit are required.
type Options[T any] struct {
	Source Source[T]
	// Emit is called with every change, and with Started, Synced and NotServed. Run returns its error.
	Emit func(*Event[T]) error
	// OnProgress is called with the resourceVersion up to which all changes have been emitted: after a list, after each later
	// event, and when the server has accepted to resume a stream. Run returns its error.
	OnProgress func(resourceVersion string) error
	// OnInterruption is called for every interruption, before the delay.
	OnInterruption func(Interruption)
	// Known has the objects kept by the caller. With nil, Run keeps the names and versions of emitted objects.
	Known KnownObjects
	// Evidence is consulted while the resource is not served. With nil its objects are kept.
	Evidence Evidence
	// IsTerminal reports whether an error ends Run once it has outlasted its grace period. nil means retry.IsRejected before the
	// first Synced. Later no response is terminal, because permissions, credentials and resources may return.
	IsTerminal func(error) bool
	// ResourceVersion is that of the objects in Known: the first watch begins there. "" begins with all objects.
	ResourceVersion string
	// ListFirst lists before the first watch, instead of a watch that begins with all objects.
	ListFirst bool
	// FirstDenialGrace is the time for retries of 401 and 403 before the server has accepted a watch, two seconds by default.
	// Afterwards the default of package retry applies.
	FirstDenialGrace time.Duration
	// MaxDelay bounds the delay between requests. The default is five seconds, and less for 404.
	MaxDelay time.Duration
	// Relist requests a relist with each received value. nil never does. It excludes CanSuspend.
	Relist <-chan struct{}
	// CanSuspend lets Run return suspend.Err while it waits for an event. The caller calls Wait, and then Run with the same ctx.
	CanSuspend bool
}

// Run is [Reflector.Run] of a new Reflector.
func Run[T any](ctx context.Context, opts Options[T]) error { return New(opts).Run(ctx) }

// Run lists and watches until a terminal error occurs, ctx ends, or a callback returns an error.
func (r *Reflector[T]) Run(ctx context.Context) error {
	defer r.unserved.end()
	r.events = &events[T]{}
	for {
		if r.suspended == nil {
			r.began = time.Now()
		}
		err := r.listAndWatchUntilRequest(ctx)
		switch {
		case r.stopped != nil:
			return r.stopped
		case r.suspended != nil:
			return suspend.Err
		}
		if err := r.recover(ctx, err, time.Since(r.began)); err != nil {
			return err
		}
	}
}

// Reflector is the state of a Run.
type Reflector[T any] struct {
	Options[T]

	state   state
	version string           // resourceVersion to resume from; "" requires a relist
	emitted versions         // same as Known; nil if the caller keeps the objects
	missing map[Key]struct{} // known objects not received in the current list; nil outside of a list
	pages   bool             // a requested relist is not complete: it lists by pages
	stopped error            // from a callback
	events  *events[T]       // nil while Run is suspended

	began     time.Time     // the start of the current list or watch
	suspended *openWatch[T] // nil unless Run is suspended

	interruptions  int
	failures       int // consecutive short streams
	lastErr        error
	denials        retry.Denials
	decodeFailures decodeFailures
	watchList      watchListSupport
	unserved       unservedPeriod
}

type state int

const (
	connecting  state = iota // before the server has accepted a request
	initialList              // Started
	synced                   // Synced
	notServed                // NotServed
	returned                 // Started again after NotServed
)

// events are events in use, so that an event needs no allocation.
type events[T any] struct {
	received Event[T] // of a watch
	marker   Event[T] // emitted without an object
}

// New returns a Reflector that has not sent a request yet.
func New[T any](opts Options[T]) *Reflector[T] {
	r := &Reflector[T]{Options: opts, version: opts.ResourceVersion, denials: retry.Denials{Grace: cmp.Or(opts.FirstDenialGrace, firstDenialGrace)}}
	if r.Known == nil {
		r.emitted = versions{}
		r.Known = r.emitted
	}
	return r
}

func (r *Reflector[T]) hasSynced() bool { return r.state >= synced }

func (r *Reflector[T]) usesWatchList() bool {
	return !r.ListFirst && !r.pages && r.watchList.isUsable()
}

// listAndWatch watches until an error occurs or the server closes the stream; the latter returns nil. Without a resourceVersion
// the watch begins with all objects or follows a list. It also returns after it has set r.suspended, and then continues that watch.
func (r *Reflector[T]) listAndWatch(ctx context.Context) error {
	if w := r.suspended; w != nil {
		r.suspended = nil
		return r.receive(w, false)
	}
	isRelist := r.version == ""
	isWatchList := isRelist && r.usesWatchList()
	if isRelist {
		r.beginRelist()
	}
	if isRelist && !isWatchList {
		if err := r.list(ctx); err != nil {
			return err
		}
	}
	// The server closes the stream after a random time, so that many watches do not reconnect at once. A longer stream is dead.
	seconds := 300 + int64(retry.Random(ctx, 299*time.Second)/time.Second)
	opts := metav1.ListOptions{ResourceVersion: r.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	if isWatchList {
		opts.SendInitialEvents = new(true)
		opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return r.watch(ctx, opts, isWatchList)
}

func (r *Reflector[T]) list(ctx context.Context) error {
	ctx, idle := withIdleTimeout(ctx, time.Time{})
	defer idle.cancel()
	version, err := r.Source.List(ctx, func(event *Event[T]) error {
		idle.stop()
		if err := r.handleEvent(event); err != nil {
			return err
		}
		idle.reset(maxIdleTime)
		return nil
	})
	idle.stop()
	if err != nil {
		if r.state != connecting {
			r.denials.Grace = 0 // the server has accepted the request for a page
		}
		return r.explain(idle, err)
	}
	if err := r.start(); err != nil {
		return err
	}
	return r.complete(version)
}

// openWatch is a watch with its timeouts.
type openWatch[T any] struct {
	stream           Stream[T]
	idle             *idleTimeout
	hasInitialEvents bool
}

func (w *openWatch[T]) close() {
	w.stream.Close()
	w.idle.cancel()
}

// watch opens a watch and handles its events. With initial events the idle timeout applies until their end.
func (r *Reflector[T]) watch(ctx context.Context, opts metav1.ListOptions, hasInitialEvents bool) error {
	ctx, idle := withIdleTimeout(ctx, time.Now().Add(time.Duration(*opts.TimeoutSeconds)*time.Second+time.Minute))
	if !hasInitialEvents {
		idle.awaitEnd()
	}
	stream, err := r.Source.Watch(ctx, opts)
	if err != nil {
		err = r.explain(idle, err)
		idle.cancel()
		r.recordWatchList(hasInitialEvents, err)
		return err
	}
	w := &openWatch[T]{stream, idle, hasInitialEvents}
	r.denials.Grace = 0
	return r.receive(w, true)
}

func (r *Reflector[T]) recordWatchList(isWatchList bool, err error) {
	if isWatchList {
		r.watchList.record(r.version != "", err)
	}
}

// receive handles the events of a new or a resumed watch, and closes it unless it is suspended.
func (r *Reflector[T]) receive(w *openWatch[T], isNew bool) (err error) {
	defer func() {
		if r.suspended == nil {
			w.close()
			r.recordWatchList(w.hasInitialEvents, err)
		}
	}()
	if isNew && r.version != "" { // the stream continues another, so the version is current
		if err := r.resume(); err != nil {
			return err
		}
	}
	if isNew && w.hasInitialEvents {
		w.idle.awaitInitialEvent(watch.Added)
	}
	event := &r.events.received
	for isSilent := isNew; ; isSilent = event.Type == watch.Bookmark {
		if isSilent && r.suspend(w) {
			return nil
		}
		*event = Event[T]{}
		err := w.stream.Next(event)
		if err == io.EOF { //nolint:errorlint // the end
			return nil
		}
		if err != nil {
			return r.explain(w.idle, err)
		}
		received := event.Type
		if r.version == "" && received == watch.Bookmark && !event.InitialEventsDone {
			continue // a bookmark within the initial events changes neither version nor idle timeout
		}
		w.idle.stop()
		if err := r.handleEvent(event); err != nil {
			return err
		}
		if w.hasInitialEvents && r.version == "" {
			w.idle.awaitInitialEvent(received)
		} else {
			w.idle.awaitEnd()
		}
	}
}

// handleEvent emits the change of an event. After the initial events it adopts the event's resourceVersion.
func (r *Reflector[T]) handleEvent(event *Event[T]) error {
	err := r.start()
	switch {
	case err != nil:
	case event.Type == watch.Bookmark && r.version == "":
		return r.complete(event.ResourceVersion)
	case event.Type == watch.Bookmark, event.IsUnselected:
	case event.Type == watch.Deleted:
		err = r.handleDeleted(event)
	default:
		err = r.handleExisting(event)
	}
	if err != nil || r.missing != nil {
		return err
	}
	if r.version != "" && event.ResourceVersion != "" { // some servers send events without a resourceVersion
		r.version = event.ResourceVersion
	}
	return r.progress()
}

// start emits Started unless it has been emitted. Its call means that the server serves the resource.
func (r *Reflector[T]) start() error {
	r.unserved.end()
	switch r.state {
	case connecting:
		r.state = initialList
	case notServed:
		r.state = returned
	default:
		return nil
	}
	return r.emitMarker(Event[T]{Type: Started})
}

// handleExisting emits an existing object, unless this version has been emitted.
func (r *Reflector[T]) handleExisting(event *Event[T]) error {
	previous, isKnown := r.knownVersion(event.Key)
	delete(r.missing, event.Key)
	if isKnown && previous == event.Version && event.ResourceVersion != "" { // it may have changed
		return nil // keeps the strings of the emitted object
	}
	r.setKnown(event.Key, event.Version)
	event.Type = watch.Added
	switch {
	case !isKnown:
	case previous.UID != event.UID && previous.UID != "": // KnownObjects may omit the UID
		if err := r.emitInferredDelete(event.Key, previous); err != nil {
			return err
		}
	default:
		event.Type = watch.Modified
	}
	return r.emit(event)
}

// handleDeleted emits a deletion, unless the object was never emitted.
func (r *Reflector[T]) handleDeleted(event *Event[T]) error {
	if _, isKnown := r.knownVersion(event.Key); !isKnown {
		return nil
	}
	r.removeKnown(event.Key)
	return r.emit(event)
}

// complete ends the initial list or a relist at a resourceVersion. Known objects missing from it are deleted.
func (r *Reflector[T]) complete(version string) error {
	if err := r.deleteMissing(); err != nil {
		return err
	}
	r.version = version
	r.pages = false
	return r.setCurrent()
}

// resume ends the initial list of a reflector that began with a resourceVersion.
func (r *Reflector[T]) resume() error {
	if r.state != connecting {
		return r.progress()
	}
	if err := r.start(); err != nil {
		return err
	}
	return r.setCurrent()
}

// setCurrent reports the version up to which all changes have been emitted, and emits Synced unless it has been emitted.
func (r *Reflector[T]) setCurrent() error {
	if err := r.progress(); err != nil {
		return err
	}
	if r.Evidence != nil {
		r.Evidence.Listed()
	}
	if r.state == synced {
		return nil
	}
	r.state = synced
	return r.emitMarker(Event[T]{Type: Synced})
}

func (r *Reflector[T]) progress() error {
	if r.OnProgress == nil {
		return nil
	}
	r.stopped = r.OnProgress(r.version)
	return r.stopped
}

func (r *Reflector[T]) emitInferredDelete(key Key, version Version) error {
	return r.emitMarker(Event[T]{Type: watch.Deleted, Key: key, Version: version, FinalStateUnknown: true})
}

// emitMarker emits an event that was not received.
func (r *Reflector[T]) emitMarker(event Event[T]) error {
	r.events.marker = event
	return r.emit(&r.events.marker)
}

func (r *Reflector[T]) emit(event *Event[T]) error {
	r.stopped = r.Emit(event)
	return r.stopped
}
