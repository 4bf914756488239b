package unstructured

import (
	"errors"
	"fmt"
	"reflect"

	"sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/jsonread"
)

// As converts obj to a new T, a struct with json tags; metav1.TypeMeta and ObjectMeta, metav1.Time, resource.Quantity,
// intstr.IntOrString, runtime.RawExtension and other json.Unmarshalers mean what they mean to the API server. It converts
// as Kubernetes' own clients do, by sigs.k8s.io/json: field names match exactly or not at all, fields that T lacks are
// not read and may hold what JSON cannot have, integers in an any are int64. The result shares no memory with obj. A
// *[Lazy] is converted straight from its JSON, where 1.0 is no integer.
//
// T may be [Object] or [Lazy], too: that is obj itself if it is one, and otherwise a conversion.
//
// A value that does not fit into T is an error that names its path and both types: ".spec.replicas: is string, not
// int32"; of a json.Unmarshaler it is that type's own error behind the path. errors.As finds the cause. A nil obj is an
// error. A Lazy that would exceed the default of [Limits].Object in T is a *[LimitError]. Safe for concurrent use as long as
// obj is not changed.
//
// Generated types work too, for programs that have them: unstructured.As[corev1.Pod](obj). [Into] is for a type that is
// known at run time only.
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

// Into is [As] for a type that is known at run time only, such as one of a runtime.Scheme or of a registry of the caller:
// it replaces what into, a non-nil pointer, points to. Nothing is merged: fields that obj lacks are zero afterwards. The
// result shares no memory with obj, even if into is an *Object. On an error *into is unchanged.
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

// convert sets what into, a pointer, points to, which is zero, to obj.
func convert[O *Object | *Lazy](obj O, into reflect.Value, limits Limits) error {
	var data []byte
	switch obj := any(obj).(type) {
	case *Object:
		target := into.Elem()
		if planOf(target.Type()).store(obj.Object, target, 0) {
			return nil
		}
		target.SetZero() // what was stored halfway
		var err error
		if data, err = Encode(obj); err != nil {
			return err
		}
	case *Lazy:
		data = obj.data
	}
	return limits.unmarshalObject(data, into.Interface())
}

// unmarshalObject reads JSON that has been checked into what into points to.
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

// From converts a Go value that is an object in JSON: a struct with json tags, a map, a pointer to one, a json.Marshaler;
// an [Object] or a [Lazy], too. The result is what [Decode] would return for what encoding/json writes, with all that the
// tags require (omitempty, omitzero, inline), and shares no memory with v.
//
// kind and apiVersion may be missing or empty, as in many structs: set them before the object is sent. A nil
// pointer or map, a list or a scalar is an error that names its type, and so is what encoding/json cannot write.
// A value that JSON cannot have is an error that names its path, as in [Encode].
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
