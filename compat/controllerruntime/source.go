package controllerruntime

import (
	"context"
	"encoding/json"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// decode converts an object; nil for unstructured objects.
	decode func(*unstructured.Lazy) (client.Object, error)
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
	case s.decode == nil:
		return convert(s.resource.Follow(ctx, opts), func(obj *unstructured.Object) (client.Object, error) { return obj, nil }, s.report)
	default:
		return convert(dynamic.As[unstructured.Lazy](s.resource).Follow(ctx, opts), s.decode, s.report)
	}
}

// convert converts the objects of changes. Objects with a decoding error are reported and left out.
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

// metadataDecoder returns a function that decodes the metadata of a kind's objects.
func metadataDecoder(gvk schema.GroupVersionKind, limits unstructured.Limits) func(*unstructured.Lazy) (client.Object, error) {
	return func(lazy *unstructured.Lazy) (client.Object, error) {
		obj := &metav1.PartialObjectMetadata{}
		if err := decodeInto(lazy, obj, limits); err != nil {
			return nil, err
		}
		obj.SetGroupVersionKind(gvk)
		return obj, nil
	}
}

// typedDecoder returns a function that decodes typed objects. It clears their kind, like controller-runtime's caches.
func typedDecoder(newObject func() (client.Object, error), limits unstructured.Limits) func(*unstructured.Lazy) (client.Object, error) {
	return func(lazy *unstructured.Lazy) (client.Object, error) {
		obj, err := newObject()
		if err != nil {
			return nil, err
		}
		if err := decodeInto(lazy, obj, limits); err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		return obj, nil
	}
}

const (
	// maxGrowth bounds the bytes of memory for a byte of protobuf: an empty struct in a list takes two bytes.
	maxGrowth = 1 << 10
	// maxProtobuf bounds the protobuf decoded by generated code, which has no limits, in bytes.
	maxProtobuf = 256 << 10
)

// decodeInto decodes an object into a new object of its kind: protobuf by the generated code, and everything else within limits.
func decodeInto(lazy *unstructured.Lazy, obj client.Object, limits unstructured.Limits) error {
	raw := lazy.Protobuf()
	message, isMessage := obj.(interface{ Unmarshal(data []byte) error })
	longest := int64(maxProtobuf)
	if limits.Object > 0 {
		longest = min(longest, limits.Object/maxGrowth)
	}
	if raw == nil || !isMessage || int64(len(raw)) > longest {
		return limits.Into(lazy, obj)
	}
	return message.Unmarshal(raw)
}
