package unstructured

import (
	"errors"
	"fmt"
	"reflect"

	"sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/jsonread"
)

// As converts obj to a new T, a struct with json tags. metav1.TypeMeta and ObjectMeta, metav1.Time, resource.Quantity,
// intstr.IntOrString, runtime.RawExtension and further json.Unmarshalers are decoded like in the API server. As uses
// sigs.k8s.io/json like Kubernetes' own clients: field names are case-sensitive, unknown fields are ignored, and integers in an
// any are int64. A value without a JSON form may be an error even in an unknown field. The result shares no memory with obj. A
// *[Lazy] is converted straight from its JSON, where 1.0 is no integer.
//
// T may be [Object] or [Lazy], too. The result is obj itself if obj is a *T, and otherwise a conversion.
//
// A value of an unexpected type is an error with its path and both types: ".spec.replicas: is string, not int32". The error of a
// json.Unmarshaler follows the path. errors.As finds the cause. A nil obj is an error. A Lazy beyond the default of
// [Limits].Object in T is a *[LimitError]. As is safe for concurrent use as long as obj is not changed.
//
// Generated types work too, for programs with these types: unstructured.As[corev1.Pod](obj). [Into] is for a type known at run
// time only.
func As[T any, O *Object | *Lazy](obj O) (*T, error) {
	if isNil(obj) {
		return nil, fmt.Errorf("cannot read a nil object as %s", reflect.TypeFor[T]())
	}
	if same, ok := any(obj).(*T); ok {
		return same, nil
	}
	into := new(T)
	if err := convert(obj, reflect.ValueOf(into), Limits{}); err != nil {
		return nil, err
	}
	return into, nil
}

// Into is [As] for a type known at run time only, such as a type of a runtime.Scheme. It replaces the target of into, a non-nil
// pointer. Nothing is merged: fields missing from obj are zero afterwards. The result shares no memory with obj, even if into is
// an *Object. On an error the target is unchanged.
func Into[O *Object | *Lazy](obj O, into any) error { return convertInto(obj, into, Limits{}) }

// Into is [Into] with the limit l.Object for the result.
func (l Limits) Into(obj *Lazy, into any) error { return convertInto(obj, into, l) }

func convertInto[O *Object | *Lazy](obj O, into any, limits Limits) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("cannot read an object into %T: not a pointer to a value", into)
	}
	if isNil(obj) {
		return fmt.Errorf("cannot read a nil object as %s", target.Type().Elem())
	}
	if target.Elem().IsZero() { // no copy is necessary
		err := convert(obj, target, limits)
		if err != nil {
			target.Elem().SetZero()
		}
		return err
	}
	converted := reflect.New(target.Type().Elem())
	if err := convert(obj, converted, limits); err != nil {
		return err
	}
	target.Elem().Set(converted.Elem())
	return nil
}

// convert stores obj in the target of into. The target must be zero.
func convert[O *Object | *Lazy](obj O, into reflect.Value, limits Limits) error {
	var data []byte
	var err error
	switch obj := any(obj).(type) {
	case *Object:
		target := into.Elem()
		if planOf(target.Type()).store(obj.Object, target, 0) {
			return nil
		}
		target.SetZero() // a partial result
		if data, err = Encode(obj); err != nil {
			return err
		}
	case *Lazy:
		if data, err = obj.MarshalJSON(); err != nil {
			return err
		}
	}
	return limits.unmarshalObject(data, into.Interface())
}

// unmarshalObject decodes valid JSON into the target of into.
func (l Limits) unmarshalObject(data []byte, into any) error {
	switch into := into.(type) {
	case *Object:
		m, _, err := readJSON(data)
		into.Object = m
		return err
	case *Lazy:
		r := jsonread.Borrow(data)
		defer r.Release()
		obj, err := readLazy(r)
		if err == nil {
			*into = *obj
		}
		return err
	default:
		if err := l.CheckTyped(data, into); err != nil {
			return err
		}
		if err := json.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
			return explainMismatch(data, reflect.TypeOf(into).Elem(), l.ofMismatch(), err)
		}
		return nil
	}
}

func isNil[O *Object | *Lazy](obj O) bool {
	switch obj := any(obj).(type) {
	case *Object:
		return obj == nil || obj.Object == nil
	case *Lazy:
		return obj == nil || len(obj.data) == 0
	default:
		return true
	}
}

var errNilObject = errors.New("cannot convert a nil object")

// From converts a Go value to an object: a struct with json tags, a map, a pointer to either, a json.Marshaler, an [Object] or a
// [Lazy]. Its JSON form must be an object. The result equals [Decode] of the output of encoding/json, including the effects of
// tags (omitempty, omitzero, inline). It shares no memory with v.
//
// kind and apiVersion may be missing or empty, as in many structs: set them before the object is sent. A nil pointer or map, a
// list or a scalar is an error with its type. A value without a JSON form is an error with its path, as in [Encode].
func From(v any) (*Object, error) {
	switch obj := v.(type) {
	case *Object:
		if isNil(obj) {
			return nil, errNilObject
		}
		v = obj.Object
	case *Lazy:
		if isNil(obj) {
			return nil, errNilObject
		}
		return obj.Object()
	}
	plain, err := normalize(v, nil)
	if err != nil {
		return nil, err
	}
	m, ok := plain.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("cannot convert %T: in JSON it is %s, not an object", v, typeName(plain))
	}
	return &Object{Object: m}, nil
}
