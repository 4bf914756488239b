package unstructured

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/json"
)

// As reads obj into a new T, a struct of the caller's with json tags; metav1.TypeMeta and ObjectMeta, metav1.Time,
// resource.Quantity, intstr.IntOrString, runtime.RawExtension and whatever unmarshals itself mean what they mean to
// the API server. It reads as Kubernetes' own clients do, by sigs.k8s.io/json: names of fields match in case or not at
// all, fields that T lacks are left out, integers in an any are int64. The result shares no memory with obj. Out of a
// *[Lazy] it is read straight from the JSON, where 1.0 is no integer.
//
// What nobody reads is not looked at: a field that T lacks may hold what JSON cannot have.
//
// T may be [Object] or [Lazy], too: that is obj itself if it is one, and otherwise made of it.
//
// A value that does not fit into T is an error that names its path and both types: ".spec.replicas: is string, not
// int32"; of a type that unmarshals itself it is that type's own error behind the path. errors.As finds the cause. A
// nil obj is an error. Safe for concurrent use while nobody changes obj.
func As[T any, O *Object | *Lazy](obj O) (*T, error) {
	if isNil(obj) {
		return nil, fmt.Errorf("cannot read a nil object as %s", reflect.TypeFor[T]())
	}
	if same, ok := any(obj).(*T); ok {
		return same, nil
	}
	into := new(T)
	var err error
	switch into := any(into).(type) {
	case *Object:
		var data []byte
		if data, err = jsonOf(obj); err == nil {
			into.Object, _, err = readJSON(data)
		}
	case *Lazy:
		var data []byte
		if data, err = jsonOf(obj); err == nil {
			err = readLazy(data, into)
		}
	default:
		err = readInto(obj, reflect.ValueOf(into))
	}
	if err != nil {
		return nil, err
	}
	return into, nil
}

// readInto reads obj into what into points to.
func readInto[O *Object | *Lazy](obj O, into reflect.Value) error {
	t := into.Type().Elem()
	if obj, ok := any(obj).(*Object); ok {
		if planOf(t).direct(obj.Object, into.Elem(), 0) {
			return nil
		}
		into.Elem().SetZero()
	}
	data, err := jsonOf(obj)
	if err != nil {
		return err
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, into.Interface()); err != nil {
		return misfit(data, t, err)
	}
	return nil
}

func readLazy(data []byte, into *Lazy) error {
	r := borrowReader(data)
	defer r.release()
	l, err := r.lazy()
	if err != nil {
		return err
	}
	*into = *l
	return nil
}

// jsonOf is obj's JSON.
func jsonOf[O *Object | *Lazy](obj O) ([]byte, error) {
	switch obj := any(obj).(type) {
	case *Object:
		return Encode(obj)
	case *Lazy:
		return obj.data, nil
	default:
		return nil, nil
	}
}

// isNil tells whether there is no object.
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
