package dynamic

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TypedResource is a [Resource] whose verbs take and return objects of a Go type, and whose changed copies are of the same
// type. It is as cheap, immutable and safe for concurrent use. Its Resource is the untyped handle. Delete, Scale and Tables are
// the untyped handle's: their objects may be of other kinds.
//
// T is a struct with json tags, usually with metav1.TypeMeta and metav1.ObjectMeta embedded, as in generated types; it is
// converted by [unstructured.As] and [unstructured.From]. An object without kind and apiVersion is written with those of
// the resource. With T [unstructured.Lazy], objects stay JSON until a field is read; with T
// metav1.PartialObjectMetadata and [Resource.Metadata], they are metadata only, whose TypeMeta is the object's.
//
// Generated types work too, for programs that have them: dynamic.As[corev1.Pod](pods). A Lazy cannot be changed: write an
// *unstructured.Object through the handle's Resource, lazies.Resource.Create(ctx, obj, nil), and read Lazies through the
// handle.
//
// An object that does not fit T is an error with the object's name, the path in it and both types. It ends a List, Watch
// or Follow.
type TypedResource[T any] struct {
	*Resource
}

// As returns a handle on the same resource for objects of type T: dynamic.As[Foo](foos).
func As[T any](r *Resource) *TypedResource[T] { return &TypedResource[T]{Resource: r} }

// Namespace is [Resource.Namespace].
func (t *TypedResource[T]) Namespace(namespace string) *TypedResource[T] {
	return As[T](t.Resource.Namespace(namespace))
}

// AllNamespaces is [Resource.AllNamespaces].
func (t *TypedResource[T]) AllNamespaces() *TypedResource[T] {
	return As[T](t.Resource.AllNamespaces())
}

// Named is [Resource.Named].
func (t *TypedResource[T]) Named(name string) *TypedResource[T] {
	return As[T](t.Resource.Named(name))
}

// WithDefaults is [Resource.WithDefaults].
func (t *TypedResource[T]) WithDefaults(defaults *Defaults) *TypedResource[T] {
	return As[T](t.Resource.WithDefaults(defaults))
}

// Subresource is [Resource.Subresource].
func (t *TypedResource[T]) Subresource(name string) *TypedResource[T] {
	return As[T](t.Resource.Subresource(name))
}

// Paging is [Resource.Paging].
func (t *TypedResource[T]) Paging(opts *PagingOptions) *TypedResource[T] {
	return As[T](t.Resource.Paging(opts))
}

// Metadata is [Resource.Metadata]: the fields of T besides its metadata are zero.
func (t *TypedResource[T]) Metadata() *TypedResource[T] {
	return As[T](t.Resource.Metadata())
}

// OnWrite is [Resource.OnWrite].
func (t *TypedResource[T]) OnWrite(begin func(ctx context.Context, namespace, name string) (end func(Write))) *TypedResource[T] {
	return As[T](t.Resource.OnWrite(begin))
}

// Get is [Resource.Get].
func (t *TypedResource[T]) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*T, error) {
	return getAs(ctx, t.Resource, name, opts, t.decoder())
}

// List is [Resource.List].
func (t *TypedResource[T]) List(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*T, error] {
	return listAs(ctx, t.Resource, opts, t.decoder())
}

// ListPage is [Resource.ListPage].
func (t *TypedResource[T]) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page[T], error) {
	return listPageAs(ctx, t.Resource, opts, t.decoder())
}

// Watch is [Resource.Watch].
func (t *TypedResource[T]) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[T], error] {
	return watchAs(ctx, t.Resource, opts, t.decoder)
}

// OpenWatch is [Resource.OpenWatch].
func (t *TypedResource[T]) OpenWatch(ctx context.Context, opts *metav1.ListOptions) (*WatchStream[T], error) {
	return openWatchAs(ctx, t.Resource, opts, t.decoder)
}

// Create is [Resource.Create].
func (t *TypedResource[T]) Create(ctx context.Context, obj *T, opts *metav1.CreateOptions) (*T, error) {
	untyped, err := t.toObject("create", obj)
	if err != nil {
		return nil, err
	}
	return writeAs(ctx, t.Resource, "create", jsonType, untyped, opts, t.decoder())
}

// Update is [Resource.Update]. It replaces the whole object: fields that T does not have are lost. Upsert and Patch keep
// them.
func (t *TypedResource[T]) Update(ctx context.Context, obj *T, opts *metav1.UpdateOptions) (*T, error) {
	untyped, err := t.toObject("update", obj)
	if err != nil {
		return nil, err
	}
	return writeAs(ctx, t.Resource, "update", jsonType, untyped, opts, t.decoder())
}

// Apply is [Resource.Apply]. A field without omitempty or omitzero is always written, and so owned by opts.FieldManager.
func (t *TypedResource[T]) Apply(ctx context.Context, obj *T, opts *metav1.ApplyOptions) (*T, error) {
	untyped, err := t.toObject("patch", obj)
	if err != nil {
		return nil, err
	}
	return applyAs(ctx, t.Resource, untyped, opts, t.decoder())
}

// Patch is [Resource.Patch].
func (t *TypedResource[T]) Patch(ctx context.Context, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions) (*T, error) {
	return patchAs(ctx, t.Resource, name, patchType, patch, opts, t.decoder())
}

// DeleteCollection is [Resource.DeleteCollection].
func (t *TypedResource[T]) DeleteCollection(ctx context.Context, opts *metav1.DeleteOptions, list *metav1.ListOptions) (*Page[T], error) {
	return deleteCollectionAs(ctx, t.Resource, opts, list, t.decoder())
}

// Wait is [Resource.Wait].
func (t *TypedResource[T]) Wait(ctx context.Context, name string, conditions ...WaitCondition) (*T, error) {
	obj, err := t.Resource.Wait(ctx, name, conditions...)
	if err != nil || obj == nil {
		return nil, err
	}
	return t.fromObject(obj)
}

// ForEach is [Resource.ForEach]. An object that does not fit T has that as its error and ends nothing.
func (t *TypedResource[T]) ForEach(ctx context.Context, list *metav1.ListOptions, opts *ForEachOptions,
	process func(ctx context.Context, in *TypedResource[T], obj *T) error,
) error {
	return t.Resource.ForEach(ctx, list, opts, func(ctx context.Context, in *Resource, obj *unstructured.Object) error {
		typed, err := unstructured.As[T](obj)
		if err != nil {
			return fmt.Errorf("decode as %s: %w", reflect.TypeFor[T](), err)
		}
		return process(ctx, As[T](in), typed)
	})
}

// Upsert is [Resource.Upsert]. Of an existing object it writes what change has changed: fields that T does not have are
// kept, except within the items of a list that has changed.
func (t *TypedResource[T]) Upsert(ctx context.Context, name string, change func(*T) error, opts *metav1.UpdateOptions) (*T, UpsertResult, error) {
	if change == nil {
		return nil, "", t.invalid("update", name, "the change to make is nil")
	}
	obj, result, err := t.Resource.Upsert(ctx, name, func(obj *unstructured.Object) error {
		isNew := obj.GetResourceVersion() == ""
		typed, err := unstructured.As[T](obj)
		if err != nil {
			return err
		}
		before, err := unstructured.From(typed) // the fields that T has
		if err != nil {
			return err
		}
		if err := change(typed); err != nil {
			return err
		}
		after, err := unstructured.From(typed)
		if err != nil {
			return err
		}
		if isNew {
			before.Object = nil
		}
		mergeChanges(obj.Object, before.Object, after.Object)
		return nil
	}, opts)
	if err != nil {
		return nil, "", err
	}
	typed, err := t.fromObject(obj)
	if err != nil {
		return nil, "", err
	}
	return typed, result, nil
}

// mergeChanges repeats in target the changes from before to after.
func mergeChanges(target, before, after map[string]any) {
	for field := range before {
		if _, ok := after[field]; !ok {
			delete(target, field)
		}
	}
	for field, value := range after {
		old, hadOld := before[field]
		if hadOld && reflect.DeepEqual(old, value) {
			continue
		}
		valueMap, valueIsMap := value.(map[string]any)
		oldMap, _ := old.(map[string]any)
		targetMap, targetIsMap := target[field].(map[string]any)
		if valueIsMap && targetIsMap {
			mergeChanges(targetMap, oldMap, valueMap)
		} else {
			target[field] = value
		}
	}
}

func (t *TypedResource[T]) toObject(verb string, obj *T) (*unstructured.Object, error) {
	if obj == nil {
		return nil, t.invalid(verb, "", "the object is nil")
	}
	untyped, err := unstructured.From(obj)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, t, err)
	}
	return untyped, nil
}

func (t *TypedResource[T]) fromObject(obj *unstructured.Object) (*T, error) {
	typed, err := unstructured.As[T](obj)
	if err != nil {
		return nil, t.conversionError(obj.GetNamespace(), obj.GetName(), err)
	}
	return typed, nil
}

func (t *TypedResource[T]) decoder() decoder[T] { return convertingDecoder[T](t.convert) }

func (t *TypedResource[T]) convert(lazy *unstructured.Lazy) (*T, error) {
	lazy = t.representLazy(lazy)
	if same, ok := any(lazy).(*T); ok {
		return same, nil
	}
	typed := new(T)
	if err := t.limits().Into(lazy, typed); err != nil {
		return nil, t.conversionError(lazy.GetNamespace(), lazy.GetName(), err)
	}
	return typed, nil
}

func (t *TypedResource[T]) conversionError(namespace, name string, err error) error {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Errorf("decode %s %s as %s: %w", t, quoted(name), reflect.TypeFor[T](), err)
}
