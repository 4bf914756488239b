package controllerruntime

import (
	"context"
	"encoding/json"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// cached is an object of an informer in one of the three forms.
type cached struct{ client.Object }

// MarshalJSON implements json.Marshaler. cache.MutationError finds the paths of changed fields in the JSON.
func (c *cached) MarshalJSON() ([]byte, error) { return json.Marshal(c.Object) }

// source is the cache.Source of an informer: it converts the objects of a resource to the informer's form.
type source struct {
	resource *dynamic.Resource
	// failure is the error that replaces a missing resource, or nil.
	failure error
	decoder *decoder // nil for unstructured objects
	// report is called with the error of each object that is left out.
	report func(error)
}

// Path implements cache.Source.
func (s *source) Path(name string) (string, error) {
	if s.failure != nil {
		return "", s.failure
	}
	return s.resource.Path(name)
}

// Follow implements cache.Source.
func (s *source) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[cached], error] {
	switch {
	case s.failure != nil:
		return func(yield func(dynamic.Change[cached], error) bool) { yield(dynamic.Change[cached]{}, s.failure) }
	case s.decoder == nil:
		return wrapped(s.resource.Follow(ctx, opts))
	default:
		return s.decodable(dynamic.Decode(s.resource, s.decoder.functions()).Follow(ctx, opts))
	}
}

// wrapped returns changes of unstructured objects as changes of cached objects.
func wrapped(changes iter.Seq2[dynamic.Change[unstructured.Object], error]) iter.Seq2[dynamic.Change[cached], error] {
	return func(yield func(dynamic.Change[cached], error) bool) {
		for change, err := range changes {
			converted := dynamic.Change[cached]{Type: change.Type, FinalStateUnknown: change.FinalStateUnknown}
			if change.Object != nil {
				converted.Object = &cached{change.Object}
			}
			if !yield(converted, err) {
				return
			}
		}
	}
}

// decodable returns changes without undecodable objects, which are reported. The final state of a deleted object is left out alone: the
// cache may have an earlier state.
func (s *source) decodable(changes iter.Seq2[dynamic.Change[cached], error]) iter.Seq2[dynamic.Change[cached], error] {
	return func(yield func(dynamic.Change[cached], error) bool) {
		for change, err := range changes {
			if change.Object != nil {
				if bad, isUndecodable := change.Object.Object.(*undecodable); isUndecodable {
					s.report(bad.err)
					if change.Type != watch.Deleted {
						continue
					}
					change.FinalStateUnknown = true
				}
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// undecodable takes the place of an object that does not fit its Go type.
type undecodable struct {
	client.Object // its namespace and name
	err           error
}

// decoder decodes objects of a Go type.
type decoder struct {
	newObject func() (client.Object, error)
	kind      schema.GroupVersionKind // of decoded objects; typed objects have none, as in controller-runtime's caches
	limits    unstructured.Limits
}

// functions returns the functions of d for a handle.
func (d *decoder) functions() dynamic.Decoder[cached] {
	functions := dynamic.Decoder[cached]{Lazy: func(lazy *unstructured.Lazy) (*cached, error) {
		obj, err := d.newObject()
		if err == nil {
			err = d.limits.Into(lazy, obj)
		}
		if err != nil {
			name := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: lazy.GetNamespace(), Name: lazy.GetName()}}
			return &cached{&undecodable{name, err}}, nil //nolint:nilerr // decodable reports it
		}
		return d.finish(obj), nil
	}}
	if obj, err := d.newObject(); err == nil && generatedMessage(obj) != nil {
		functions.Message = func(data []byte) (*cached, error) {
			obj, err := d.newObject()
			if err != nil {
				return nil, err
			}
			if err := generatedMessage(obj).Unmarshal(data); err != nil {
				return nil, err
			}
			return d.finish(obj), nil
		}
	}
	return functions
}

func (d *decoder) finish(obj client.Object) *cached {
	obj.GetObjectKind().SetGroupVersionKind(d.kind)
	return &cached{obj}
}

// newMetadata is decoder.newObject for metadata.
func newMetadata() (client.Object, error) { return &metav1.PartialObjectMetadata{}, nil }
