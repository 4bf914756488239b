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

// errStopped says that the loop over the changes was left.
var errStopped = errors.New("stopped")

// follower is one Follow under way.
type follower[T any, P object[T]] struct {
	resource *Resource
	opts     FollowOptions
	read     func() reader[T]
	// only gives an object that has nothing but its identity the form of the others.
	only func(*unstructured.Object) (*T, error)
	tell func(Change[T], error) bool

	known   known[T, P]
	version string // to go on from; "" means that all objects must be read
	begun   bool   // Started has been told, and Lost not since
	synced  bool   // likewise
	once    bool   // Synced has been told at least once
	lists   bool   // the server has no WatchList

	interruptions int
	brief         int // streams in a row that did not last
	missing       absence
	garbled       garbled
	unfinished    int   // streams that ended before the server had told all that there is
	trouble       error // what broke last
}

func followAs[T any, P object[T]](ctx context.Context, r *Resource, opts *FollowOptions, read func() reader[T], only func(*unstructured.Object) (*T, error)) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		f := &follower[T, P]{resource: r, read: read, only: only, tell: yield, known: newKnown[T, P]()}
		if opts != nil {
			f.opts = *opts
		}
		if err := f.run(ctx); !errors.Is(err, errStopped) {
			yield(Change[T]{}, err)
		}
	}
}

// run streams until that ends for good.
func (f *follower[T, P]) run(ctx context.Context) error {
	for {
		begin := time.Now()
		err := f.stream(ctx)
		if errors.Is(err, errStopped) {
			return err
		}
		if err := f.mend(ctx, err, time.Since(begin)); err != nil {
			return err
		}
	}
}

// stream reads until the server closes the stream, which is no error, or something breaks.
func (f *follower[T, P]) stream(ctx context.Context) error {
	if f.version == "" && f.lists {
		if err := f.readAll(ctx); err != nil {
			return err
		}
	}
	// The server closes the stream in time, spread so that many watches do not all come back at once. One who is
	// silent for longer is dead.
	seconds := int64(300 + rand.IntN(300)) //nolint:gosec // spread, not secrecy
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+time.Minute)
	defer cancel()
	opts := f.listOptions()
	opts.ResourceVersion, opts.AllowWatchBookmarks, opts.TimeoutSeconds = f.version, true, &seconds
	ctx, alarm := f.resource.listen(ctx)
	defer alarm.end()
	starts := f.version == "" && !f.lists
	if starts {
		yes := true
		opts.SendInitialEvents, opts.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
		f.known.begin()
	} else {
		alarm.rest() // where nothing changes, nothing is to be told
	}
	for event, err := range watchAs(ctx, f.resource, opts, f.read) {
		if err != nil {
			return alarm.explain(err)
		}
		if f.premature(event) {
			continue
		}
		alarm.rest()
		if err := f.hear(event); err != nil {
			return err
		}
		if starts && f.version == "" {
			alarm.set()
		}
	}
	return nil
}

// premature says of a bookmark that it is not the one behind all that there is. That tells nothing, nor that the server
// comes on with telling all.
func (f *follower[T, P]) premature(event unstructured.Event[T]) bool {
	return f.version == "" && event.Type == watch.Bookmark && P(event.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true"
}

func (f *follower[T, P]) listOptions() *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: f.opts.LabelSelector, FieldSelector: f.opts.FieldSelector}
}

// readAll lists page by page, where the server cannot begin a watch with what there is.
func (f *follower[T, P]) readAll(ctx context.Context) error {
	f.known.begin()
	var version string
	pages := f.resource.Paging(&Paging{Page: func(meta metav1.ListMeta) { version = meta.ResourceVersion }})
	ctx, alarm := f.resource.listen(ctx)
	defer alarm.end()
	for obj, err := range listAs(ctx, pages, f.listOptions(), f.read()) {
		alarm.rest()
		if err != nil {
			return alarm.explain(err)
		}
		if err := f.present(obj); err != nil {
			return err
		}
		alarm.set()
	}
	if err := f.start(); err != nil {
		return err
	}
	return f.complete(version)
}

// hear takes one event of the watch, which is not premature.
func (f *follower[T, P]) hear(event unstructured.Event[T]) error {
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
		if err := f.absent(event.Object); err != nil {
			return err
		}
	default:
		if err := f.present(event.Object); err != nil {
			return err
		}
	}
	if f.version == "" {
		return nil
	}
	if version := obj.GetResourceVersion(); version != "" { // without one there is nothing to go on from
		f.version = version
		f.progress()
	}
	return nil
}

// start tells that what there is begins, once.
func (f *follower[T, P]) start() error {
	f.missing = absence{}
	if f.begun {
		return nil
	}
	f.begun = true
	return f.say(Change[T]{Type: Started})
}

// present tells an object that is there, unless that is known.
func (f *follower[T, P]) present(obj *T) error {
	if err := f.start(); err != nil {
		return err
	}
	was, is := f.known.note(obj)
	switch {
	case was == nil:
		return f.say(Change[T]{Type: watch.Added, Object: obj})
	case was.uid != is.uid:
		if err := f.sayUnseen(P(obj).GetNamespace(), P(obj).GetName(), *was); err != nil {
			return err
		}
		return f.say(Change[T]{Type: watch.Added, Object: obj})
	case was.version != is.version:
		return f.say(Change[T]{Type: watch.Modified, Object: obj})
	default:
		return nil
	}
}

// absent tells that an object is gone, unless it was never told.
func (f *follower[T, P]) absent(obj *T) error {
	if f.known.forget(obj) {
		return f.say(Change[T]{Type: watch.Deleted, Object: obj})
	}
	return nil
}

// complete goes on from version: all that is there has been read, and what was not read is gone.
func (f *follower[T, P]) complete(version string) error {
	if err := f.sayAllUnseen(f.known.unread()); err != nil {
		return err
	}
	f.version = version
	f.progress()
	if f.synced {
		return nil
	}
	f.synced, f.once = true, true
	return f.say(Change[T]{Type: Synced})
}

func (f *follower[T, P]) progress() {
	if f.opts.Progress != nil {
		f.opts.Progress(f.version)
	}
}

// lose tells that nothing is left, since the resource itself is gone.
func (f *follower[T, P]) lose() error {
	f.known.begin()
	if err := f.sayAllUnseen(f.known.unread()); err != nil || !f.begun {
		return err
	}
	f.begun, f.synced = false, false
	return f.say(Change[T]{Type: Lost})
}

func (f *follower[T, P]) sayAllUnseen(gone []goneObject) error {
	for _, was := range gone {
		if err := f.sayUnseen(was.namespace, was.name, was.identity); err != nil {
			return err
		}
	}
	return nil
}

// sayUnseen tells that an object is gone of which only the identity is known.
func (f *follower[T, P]) sayUnseen(namespace, name string, was identity) error {
	obj := &unstructured.Object{}
	obj.SetGroupVersionKind(f.resource.mapping.GVK)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(was.uid)
	obj.SetResourceVersion(was.version)
	only, err := f.only(obj)
	if err != nil {
		return err
	}
	return f.say(Change[T]{Type: watch.Deleted, Object: only, Unseen: true})
}

func (f *follower[T, P]) say(change Change[T]) error {
	if !f.tell(change, nil) {
		return errStopped
	}
	return nil
}
