package controllerruntime

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cached is an object of an informer in one of the three forms.
type cached struct{ client.Object }

const (
	minSourceBackoff = time.Second
	maxSourceBackoff = 30 * time.Second
)

// source is the stream of an informer's objects. Where [dynamic.Resource.Follow] ends because the server rejects its request,
// it reports the error and tries again, as client-go's reflectors do.
type source struct {
	resource *dynamic.Resource
	// failure is why there is no resource, nil if there is one.
	failure error
	// decode converts an object; nil for unstructured objects.
	decode func(*unstructured.Lazy) (client.Object, error)
	// report is called with every error that interrupts the stream or that leaves an object out.
	report func(error)
	// resourceVersion is that up to which the stream has been read.
	resourceVersion atomic.Pointer[string]
}

func (s *source) Path(name string) (string, error) {
	if s.failure != nil {
		return "", s.failure
	}
	return s.resource.Path(name)
}

// String names the resource.
func (s *source) String() string {
	if s.failure != nil {
		return "no resource"
	}
	return s.resource.String()
}

func (s *source) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[cached], error] {
	return func(yield func(dynamic.Change[cached], error) bool) {
		list := &initialList{keys: map[cache.Key]bool{}}
		for backoff := minSourceBackoff; ; backoff = min(2*backoff, maxSourceBackoff) {
			var failure error
			for change, err := range s.changes(ctx, s.options(opts)) {
				if err != nil {
					failure = err
					break
				}
				for _, gone := range list.differences(change) {
					if !yield(gone, nil) {
						return
					}
				}
				if !yield(change, nil) {
					return
				}
			}
			if ctx.Err() != nil || list.synced {
				yield(dynamic.Change[cached]{}, failure)
				return
			}
			s.report(failure)
			list.restart()
			select {
			case <-ctx.Done():
			case <-time.After(backoff + rand.N(backoff/2)):
			}
		}
	}
}

// options returns the options of one attempt, which also report what this source reports.
func (s *source) options(opts *dynamic.FollowOptions) *dynamic.FollowOptions {
	changed := *opts
	changed.OnProgress = func(resourceVersion string) {
		s.resourceVersion.Store(&resourceVersion)
		if opts.OnProgress != nil {
			opts.OnProgress(resourceVersion)
		}
	}
	changed.OnInterruption = func(i dynamic.Interruption) {
		if i.Err != nil {
			s.report(i.Err)
		}
		if opts.OnInterruption != nil {
			opts.OnInterruption(i)
		}
	}
	return &changed
}

// changes returns the changes of one attempt in the informer's form.
func (s *source) changes(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[cached], error] {
	switch {
	case s.failure != nil:
		return func(yield func(dynamic.Change[cached], error) bool) { yield(dynamic.Change[cached]{}, s.failure) }
	case s.decode == nil:
		return convert(s.resource.Follow(ctx, opts), func(obj *unstructured.Object) (client.Object, error) { return obj, nil }, s.report)
	default:
		return convert(dynamic.As[unstructured.Lazy](s.resource).Follow(ctx, opts), s.decode, s.report)
	}
}

// convert converts the objects of changes. One that cannot be converted is reported and left out.
func convert[T any](changes iter.Seq2[dynamic.Change[T], error], decode func(*T) (client.Object, error), report func(error)) iter.Seq2[dynamic.Change[cached], error] {
	return func(yield func(dynamic.Change[cached], error) bool) {
		for change, err := range changes {
			converted := dynamic.Change[cached]{Type: change.Type, FinalStateUnknown: change.FinalStateUnknown}
			if err == nil && change.Object != nil {
				obj, failure := decode(change.Object)
				if failure != nil {
					report(failure)
					continue
				}
				converted.Object = &cached{obj}
			}
			if !yield(converted, err) {
				return
			}
		}
	}
}

// initialList finds what an attempt that failed has emitted and the next does not have.
type initialList struct {
	keys   map[cache.Key]bool // of emitted objects; true if the current attempt has emitted it
	synced bool
}

func (l *initialList) restart() {
	for key := range l.keys {
		l.keys[key] = false
	}
}

// differences returns the deletions to emit before a change.
func (l *initialList) differences(change dynamic.Change[cached]) (gone []dynamic.Change[cached]) {
	switch {
	case l.synced:
	case change.Type == dynamic.Synced:
		for key, emitted := range l.keys {
			if !emitted {
				obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
				gone = append(gone, dynamic.Change[cached]{Type: watch.Deleted, Object: &cached{obj}, FinalStateUnknown: true})
			}
		}
		l.keys, l.synced = nil, true
	case change.Object == nil:
	case change.Type == watch.Deleted:
		delete(l.keys, cache.KeyOf(change.Object))
	default:
		l.keys[cache.KeyOf(change.Object)] = true
	}
	return gone
}

// metadataDecoder returns a function that decodes metadata of objects of a kind.
func metadataDecoder(gvk schema.GroupVersionKind) func(*unstructured.Lazy) (client.Object, error) {
	return func(lazy *unstructured.Lazy) (client.Object, error) {
		obj := &metav1.PartialObjectMetadata{}
		if err := unstructured.Into(lazy, obj); err != nil {
			return nil, err
		}
		obj.SetGroupVersionKind(gvk)
		return obj, nil
	}
}

// typedDecoder returns a function that decodes objects of a Go type, which has no kind then, as in controller-runtime's caches.
func typedDecoder(newObject func() (client.Object, error)) func(*unstructured.Lazy) (client.Object, error) {
	return func(lazy *unstructured.Lazy) (client.Object, error) {
		obj, err := newObject()
		if err != nil {
			return nil, err
		}
		if err := unstructured.Into(lazy, obj); err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		return obj, nil
	}
}
