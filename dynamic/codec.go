package dynamic

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/unstructured"
)

// codec converts between objects of type T, the items read by an endpoint, and the objects written by it.
type codec[T any] interface {
	// form is the form of the items to decode.
	form() form
	// decode converts an item of a response of e. A whole object is accepted in addition to the codec's form.
	decode(e *endpoint, item item) (*T, error)
	encode(obj *T) (*unstructured.Object, error)
	// change calls change with obj as a T, and applies its changes to obj.
	change(obj *unstructured.Object, change func(*T) error) error
}

// codecOf returns the codec of T.
func codecOf[T any]() codec[T] {
	if codec, ok := any(objectCodec{}).(codec[T]); ok {
		return codec
	}
	// A program without a use of TableRow does not contain the code for tables.
	if row, ok := any((*T)(nil)).(interface{ codec() codec[T] }); ok {
		return row.codec()
	}
	return structCodec[T]{}
}

// objectCodec is the codec of unstructured.Object. It converts nothing.
type objectCodec struct{}

func (objectCodec) form() form { return wholeObjects{} }

func (objectCodec) decode(e *endpoint, item item) (*unstructured.Object, error) {
	return e.represent(item.object), nil
}

func (objectCodec) encode(obj *unstructured.Object) (*unstructured.Object, error) { return obj, nil }

func (objectCodec) change(obj *unstructured.Object, change func(*unstructured.Object) error) error {
	return change(obj)
}

// structCodec is the codec of structs, which it converts from lazy objects, and of unstructured.Lazy.
type structCodec[T any] struct{}

func (structCodec[T]) form() form { return lazyObjects{} }

func (structCodec[T]) decode(e *endpoint, item item) (typed *T, err error) {
	if item.object != nil {
		if typed, err = unstructured.As[T](e.represent(item.object)); err != nil {
			return nil, e.conversionError(item, reflect.TypeFor[T](), err)
		}
		return typed, nil
	}
	lazy := e.representLazy(item.lazy)
	if same, ok := any(lazy).(*T); ok {
		return same, nil
	}
	typed = new(T)
	if err := e.limits().Into(lazy, typed); err != nil {
		return nil, e.conversionError(item, reflect.TypeFor[T](), err)
	}
	return typed, nil
}

func (e *endpoint) conversionError(item item, to reflect.Type, err error) error {
	meta := item.meta()
	name := meta.GetName()
	if namespace := meta.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Errorf("decode %s %s as %s: %w", e, quoted(name), to, err)
}

func (structCodec[T]) encode(obj *T) (*unstructured.Object, error) { return unstructured.From(obj) }

func (structCodec[T]) change(obj *unstructured.Object, change func(*T) error) error {
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

const (
	metaVersion = "meta.k8s.io/v1" // the apiVersion of the representations
	partialKind = "PartialObjectMetadata"
	tableKind   = "Table"
)

// representation is how the server is to return objects; the zero value is as they are.
type representation struct {
	kind    string // partialKind or tableKind
	include metav1.IncludeObjectPolicy
}

// accept returns the Accept header for the representation, and for whole objects from servers without it.
func (r representation) accept(isList bool) string {
	kind := r.kind
	if kind == partialKind && isList {
		kind += "List"
	}
	return jsonType + ";as=" + kind + ";v=v1;g=meta.k8s.io," + jsonType
}

// withRepresentation returns a copy of e that requests a representation.
func (e *endpoint) withRepresentation(representation representation) *endpoint {
	changed := *e
	changed.representation = representation
	return &changed
}

// represent reduces an object to the handle's representation, which the server may have done already.
func (e *endpoint) represent(obj *unstructured.Object) *unstructured.Object {
	if e.representation.kind != partialKind || isStatus(obj) {
		return obj
	}
	if isPartial(obj) {
		e.setKind(obj)
		return obj
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"],
	}}
}

func (e *endpoint) representLazy(obj *unstructured.Lazy) *unstructured.Lazy {
	if e.representation.kind != partialKind {
		return obj
	}
	typeMeta := metav1.TypeMeta{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind()}
	if typeMeta.Kind == partialKind && typeMeta.APIVersion == metaVersion && !e.objectKind().Empty() {
		typeMeta.APIVersion, typeMeta.Kind = e.objectKind().ToAPIVersionAndKind()
	}
	return obj.Metadata(typeMeta)
}

// representList returns the type of a list of whole objects for that of a list of metadata.
func (e *endpoint) representList(list metav1.TypeMeta) metav1.TypeMeta {
	if e.representation.kind == partialKind && list.Kind == partialKind+"List" && list.APIVersion == metaVersion && !e.apiResource.GVK.Empty() {
		list.APIVersion, list.Kind = e.apiResource.GVK.ToAPIVersionAndKind()
		list.Kind += "List"
	}
	return list
}

// setKind sets the known kind of an object without a kind.
func (e *endpoint) setKind(obj *unstructured.Object) {
	if kind := e.objectKind(); !kind.Empty() {
		obj.SetGroupVersionKind(kind)
	}
}

func isPartial(obj *unstructured.Object) bool {
	return obj.GetKind() == partialKind && obj.GetAPIVersion() == metaVersion
}
