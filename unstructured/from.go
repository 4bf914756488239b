package unstructured

import (
	"errors"
	"fmt"
)

// From makes an object of a Go value that has a JSON object's form: a struct with json tags, a map, a pointer to
// one, or what marshals itself as one; an [Object] or a [Lazy], too. It holds what [Decode] would make of what
// encoding/json writes, with all that the tags say (omitempty, omitzero, inline), and shares no memory with v.
//
// kind and apiVersion may be missing or empty, as they are in many a struct: set them before the object is sent. A nil
// pointer or map, a list or a scalar is an error that names its type, and so is what encoding/json cannot write.
// A value that is nowhere allowed has an error that names its path, as in [Encode].
func From(v any) (*Object, error) {
	switch obj := v.(type) {
	case *Object:
		if obj == nil || obj.Object == nil {
			return nil, errors.New("cannot make an object of a nil object")
		}
		v = obj.Object
	case *Lazy:
		if isNil(obj) {
			return nil, errors.New("cannot make an object of a nil object")
		}
		return obj.Object()
	}
	plain, err := normal(v, nil)
	if err != nil {
		return nil, err
	}
	m, ok := plain.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("cannot make an object of %T: in JSON it is %s, not an object", v, jsonName(plain))
	}
	return &Object{Object: m}, nil
}

func jsonName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a bool"
	default:
		return "a number"
	}
}
