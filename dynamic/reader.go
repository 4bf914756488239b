package dynamic

import (
	"fmt"

	"github.com/anykind/anykind/internal/sanitize"

	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// reader makes what a verb returns of what the server sends.
type reader[T any] struct {
	one  func(answer []byte) (*T, error)
	item func(*unstructured.ListDecoder) (*T, error)
	// event fails with io.EOF itself at the end of the watch, and with what an ERROR event carries.
	event func(*unstructured.WatchDecoder) (unstructured.Event[T], error)
}

// objects reads objects in the handle's form.
func (r *Resource) objects() reader[unstructured.Object] {
	return reader[unstructured.Object]{
		one: func(answer []byte) (*unstructured.Object, error) {
			obj, err := unstructured.Decode(answer)
			if err != nil {
				return nil, noObject(err)
			}
			return r.inForm(obj), nil
		},
		item: func(items *unstructured.ListDecoder) (*unstructured.Object, error) {
			obj, err := items.Next()
			if err != nil {
				return nil, err
			}
			return r.inForm(obj), nil
		},
		event: func(events *unstructured.WatchDecoder) (unstructured.Event[unstructured.Object], error) {
			event, err := events.Next()
			if err == nil && event.Type == watch.Error {
				err = errorOf(event.Object)
			}
			if err != nil {
				return unstructured.Event[unstructured.Object]{}, err
			}
			event.Object = r.inForm(event.Object)
			return event, nil
		},
	}
}

// sharing reads objects of which equal parts are the same.
func (r *Resource) sharing(parts *unstructured.Parts) reader[unstructured.Object] {
	own := r.objects()
	return reader[unstructured.Object]{
		one: own.one,
		item: func(items *unstructured.ListDecoder) (*unstructured.Object, error) {
			items.Share(parts)
			return own.item(items)
		},
		event: func(events *unstructured.WatchDecoder) (unstructured.Event[unstructured.Object], error) {
			events.Share(parts)
			return own.event(events)
		},
	}
}

// through reads what convert makes of each object.
func through[T any](convert func(*unstructured.Lazy) (*T, error)) reader[T] {
	return reader[T]{
		one: func(answer []byte) (*T, error) {
			obj, err := unstructured.NewLazy(answer)
			if err != nil {
				return nil, noObject(err)
			}
			return convert(obj)
		},
		item: func(items *unstructured.ListDecoder) (*T, error) {
			obj, err := items.NextLazy()
			if err != nil {
				return nil, err
			}
			return convert(obj)
		},
		event: func(events *unstructured.WatchDecoder) (unstructured.Event[T], error) {
			event, err := events.NextLazy()
			if err != nil {
				return unstructured.Event[T]{}, err
			}
			if event.Type == watch.Error {
				obj, err := event.Object.Object()
				if err != nil {
					return unstructured.Event[T]{}, err
				}
				return unstructured.Event[T]{}, errorOf(obj)
			}
			converted, err := convert(event.Object)
			return unstructured.Event[T]{Type: event.Type, Object: converted}, err
		},
	}
}

func noObject(err error) error {
	return fmt.Errorf("the answer is no Kubernetes object: %w", err)
}

// errorOf is the error that an ERROR event carries.
func errorOf(obj *unstructured.Object) error {
	status, err := statusOf(obj)
	if err != nil {
		return err
	}
	sanitize.Status(status)
	return apierrors.FromObject(status)
}
