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

// Typed is a [Resource] whose verbs take and return objects of a Go type of the caller's. What it does not redefine,
// such as Delete, DeleteCollection and Wait, is the Resource's own; foos.Resource is the untyped handle. It is as cheap,
// immutable and safe for concurrent use.
//
// T is a struct with json tags, most often with metav1.TypeMeta and metav1.ObjectMeta embedded, as generated types are;
// [unstructured.As] says how it is read, and [unstructured.From] how it is written. An object without kind and apiVersion
// is written with those of the resource. With T [unstructured.Lazy] objects stay JSON until they are asked for something;
// with T metav1.PartialObjectMetadata and [Resource.Metadata] they are metadata alone, whose TypeMeta is the object's own.
//
// An object that does not fit T is an error that names the object, the path in it and both types, and ends a List or
// Watch.
type Typed[T any] struct {
	*Resource
}

// As gives a handle on the same resource for objects of type T: dynamic.As[Foo](foos).
func As[T any](r *Resource) *Typed[T] { return &Typed[T]{Resource: r} }

// In is as [Resource.In].
func (t *Typed[T]) In(namespace string) *Typed[T] { return As[T](t.Resource.In(namespace)) }

// AllNamespaces is as [Resource.AllNamespaces].
func (t *Typed[T]) AllNamespaces() *Typed[T] { return As[T](t.Resource.AllNamespaces()) }

// Sub is as [Resource.Sub].
func (t *Typed[T]) Sub(name string) *Typed[T] { return As[T](t.Resource.Sub(name)) }

// Paging is as [Resource.Paging].
func (t *Typed[T]) Paging(p *Paging) *Typed[T] { return As[T](t.Resource.Paging(p)) }

// Get is as [Resource.Get].
func (t *Typed[T]) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*T, error) {
	return getAs(ctx, t.Resource, name, opts, t.reader())
}

// List is as [Resource.List].
func (t *Typed[T]) List(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*T, error] {
	return listAs(ctx, t.Resource, opts, t.reader())
}

// ListPage is as [Resource.ListPage].
func (t *Typed[T]) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page[T], error) {
	return listPageAs(ctx, t.Resource, opts, t.reader())
}

// Watch is as [Resource.Watch].
func (t *Typed[T]) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[T], error] {
	return watchAs(ctx, t.Resource, opts, t.reader)
}

// Create is as [Resource.Create].
func (t *Typed[T]) Create(ctx context.Context, obj *T, opts *metav1.CreateOptions) (*T, error) {
	written, err := t.written("create", obj)
	if err != nil {
		return nil, err
	}
	return createAs(ctx, t.Resource, written, opts, t.reader())
}

// Update is as [Resource.Update]. It replaces all of the object: what T has no field for is lost. Upsert and Patch keep
// it.
func (t *Typed[T]) Update(ctx context.Context, obj *T, opts *metav1.UpdateOptions) (*T, error) {
	written, err := t.written("update", obj)
	if err != nil {
		return nil, err
	}
	return updateAs(ctx, t.Resource, written, opts, t.reader())
}

// Apply is as [Resource.Apply]. A field without omitempty or omitzero is always written, and so owned by
// opts.FieldManager.
func (t *Typed[T]) Apply(ctx context.Context, obj *T, opts *metav1.ApplyOptions) (*T, error) {
	written, err := t.written("patch", obj)
	if err != nil {
		return nil, err
	}
	return applyAs(ctx, t.Resource, written, opts, t.reader())
}

// Patch is as [Resource.Patch].
func (t *Typed[T]) Patch(ctx context.Context, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions) (*T, error) {
	return patchAs(ctx, t.Resource, name, patchType, patch, opts, t.reader())
}

// Upsert is as [Resource.Upsert]. Of the object that is there it writes what change has changed: what T has no field for
// stays, but not within the items of a list that has changed.
func (t *Typed[T]) Upsert(ctx context.Context, name string, change func(*T) error, opts *metav1.UpdateOptions) (*T, Outcome, error) {
	if change == nil {
		return nil, "", t.refuse("update", name, "the change to make is nil")
	}
	obj, did, err := t.Resource.Upsert(ctx, name, func(obj *unstructured.Object) error {
		before := obj.DeepCopy()
		typed, err := unstructured.As[T](obj)
		if err != nil {
			return err
		}
		known, err := unstructured.From(typed) // of before, what T has fields for
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
		if before.GetResourceVersion() == "" {
			known.Object = nil // there is none: all of it is new
		}
		obj.Object = before.Object
		overlay(obj.Object, known.Object, after.Object)
		return nil
	}, opts)
	if err != nil {
		return nil, "", err
	}
	made, err := unstructured.As[T](obj)
	if err != nil {
		return nil, "", t.misfit(obj.GetNamespace(), name, err)
	}
	return made, did, nil
}

// overlay makes of onto what a change from before to after makes of it.
func overlay(onto, before, after map[string]any) {
	for field := range before {
		if _, stays := after[field]; !stays {
			delete(onto, field)
		}
	}
	for field, value := range after {
		was, known := before[field]
		if known && reflect.DeepEqual(was, value) {
			continue
		}
		inner, ok := value.(map[string]any)
		innerWas, wasMap := was.(map[string]any)
		innerOnto, isMap := onto[field].(map[string]any)
		if ok && isMap && (wasMap || !known) {
			overlay(innerOnto, innerWas, inner)
		} else {
			onto[field] = value
		}
	}
}

// written is obj as it is sent.
func (t *Typed[T]) written(verb string, obj *T) (*unstructured.Object, error) {
	if obj == nil {
		return nil, t.refuse(verb, "", "the object is nil")
	}
	written, err := unstructured.From(obj)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, t, err)
	}
	return written, nil
}

// reader makes a T of each object.
func (t *Typed[T]) reader() reader[T] { return through(t.made) }

// made is the T that an object makes.
func (t *Typed[T]) made(lazy *unstructured.Lazy) (*T, error) {
	read, err := unstructured.As[T](t.lazyInForm(lazy))
	if err != nil {
		return nil, t.misfit(lazy.GetNamespace(), lazy.GetName(), err)
	}
	return read, nil
}

// misfit is the error of an object that is no T.
func (t *Typed[T]) misfit(namespace, name string, err error) error {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return &endingError{fmt.Errorf("read %s %s as %s: %w", t, quotedText(name), reflect.TypeFor[T](), err)}
}
