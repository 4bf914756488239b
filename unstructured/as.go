package unstructured

import (
	"fmt"

	"sigs.k8s.io/json"
)

// As reads obj into a new T, a struct of the caller's with json tags; metav1.TypeMeta and ObjectMeta, metav1.Time,
// resource.Quantity, intstr.IntOrString, runtime.RawExtension and whatever unmarshals itself mean what they mean to
// the API server. It reads as Kubernetes' own clients do, by sigs.k8s.io/json: names of fields match in case or not at
// all, fields that T lacks are left out, integers in an any are int64. The result shares no memory with obj.
//
// T may be [Object], too: that is obj itself.
//
// A value that does not fit into T is an error that names its path and both types: ".spec.replicas: is string, not
// int32"; of a type that unmarshals itself it is that type's own error behind the path. errors.As finds the cause. A
// nil obj is an error. Safe for concurrent use while nobody changes obj.
func As[T any, O *Object](obj O) (*T, error) {
	from := (*Object)(obj)
	if from == nil || from.Object == nil {
		return nil, fmt.Errorf("cannot read a nil object as %s", nameOf[T]())
	}
	if same, ok := any(from).(*T); ok {
		return same, nil
	}
	data, err := Encode(from)
	if err != nil {
		return nil, err
	}
	return fromJSON[T](data)
}

// fromJSON reads an object's JSON, which has been checked.
func fromJSON[T any](data []byte) (*T, error) {
	into := new(T)
	if err := json.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return nil, misfit[T](data, err)
	}
	return into, nil
}
