package unstructured

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anykind/anykind/internal/jsonread"
)

// Set writes value at a path, with the steps of [Get], and replaces any previous value, whatever its type.
//
// Missing and null maps along the path are created. In a list, the index len(list) appends. A by-key step without a match appends
// an element with these keys, and creates a missing list. If the path ends in a by-key step, value gets the keys of the step, and
// different keys in value are an error. A numeric step below a missing value is an error: it may be an index or a field's name.
// Without a path, value is the whole object.
//
// The value is copied and normalized like a round trip through [Encode] and [Decode]. Integers become int64 if they fit and
// otherwise float64. Floats become float64 or, without a fraction, int64. Typed slices, maps, structs with their json tags,
// pointers, times and json.Marshalers become maps, lists and scalars. nil is null. So DeepCopy, which panics on an int, is safe
// on the result. A value without a JSON form is an error with its path, as in Encode.
//
// A value of an unexpected type along the path is an error with its path and both types. A whole path given as a single field is
// an error, as in [Get]. An error leaves obj unchanged. Set changes obj's maps in place: copy a shared object, such as an object
// of a cache, first.
func Set(obj *Object, value any, fields ...string) error {
	if obj == nil {
		return fmt.Errorf("%s: cannot be set in a nil object", pathText(fields))
	}
	if err := checkSingle(fields); err != nil {
		return err
	}
	plain, err := normalize(value, fields)
	if err != nil {
		return err
	}
	if len(fields) > 0 {
		if err := checkUnsplit(obj.Object, fields[0]); err != nil {
			return err
		}
	}
	s := setter{fields: fields, value: plain}
	root, err := s.at(obj.Object, 0)
	if err != nil {
		return err
	}
	m, ok := root.(map[string]any)
	if !ok {
		return typeMismatch(fields, root, "map[string]any")
	}
	obj.Object = m
	return nil
}

// normalize returns a copy of v with the types of Decode.
func normalize(v any, fields []string) (any, error) {
	if len(fields) > jsonread.MaxDepth {
		return nil, fmt.Errorf("%s: nested deeper than %d", pathText(fields[:1]), jsonread.MaxDepth)
	}
	switch obj := v.(type) {
	case Object:
		v = obj.Object // only *Object implements json.Marshaler
	case Lazy:
		v = &obj // only *Lazy implements it
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		return validText(v), nil
	}
	if n, ok := integer(v); ok {
		return n, nil
	}
	data, err := encodeValue(v, len(fields))
	if err != nil {
		for _, field := range slices.Backward(fields) {
			err = prependStep(step(field), err)
		}
		return nil, err
	}
	return decodeValue(data)
}

// setter is the state of a Set call. It changes nothing before the whole path is checked.
type setter struct {
	fields []string
	value  any // a copy
}

// at returns the new value at fields[:i], given the current value v.
func (s *setter) at(v any, i int) (any, error) {
	if i == len(s.fields) {
		return s.value, nil
	}
	switch parent := v.(type) {
	case nil:
		return s.missing(i)
	case map[string]any:
		if parent == nil {
			return s.missing(i)
		}
		child, err := s.at(parent[s.fields[i]], i+1)
		if err != nil {
			return nil, err
		}
		parent[s.fields[i]] = child
		return parent, nil
	case []any:
		return s.inList(parent, i)
	default:
		return nil, typeMismatch(s.fields[:i], v, "map[string]any or []any")
	}
}

// missing returns the new value at fields[:i] if there is no current value.
func (s *setter) missing(i int) (any, error) {
	field := s.fields[i]
	switch {
	case i > 0 && isSelector(field):
		return s.inList(nil, i)
	case i > 0 && isIndex(field):
		return nil, fmt.Errorf("%s: is not there, and %q may be an index or a field's name: set it to a list or a map first",
			pathText(s.fields[:i]), field)
	}
	child, err := s.at(nil, i+1)
	if err != nil {
		return nil, err
	}
	return map[string]any{field: child}, nil
}

// inList sets or appends the element of list selected by fields[i].
func (s *setter) inList(list []any, i int) (any, error) {
	at, err := elementIndex(list, s.fields, i)
	if err != nil {
		return nil, err
	}
	isNew := at < 0 || at == len(list)
	var element any
	switch {
	case at > len(list):
		return nil, fmt.Errorf("%s: is []any of %d: index %s is beyond its end (%d appends)", pathText(s.fields[:i]), len(list), s.fields[i], len(list))
	case !isNew:
		element = list[at]
	}
	if !isIndex(s.fields[i]) && (isNew || i+1 == len(s.fields)) {
		element, err = s.keyed(list, i, isNew)
	} else {
		element, err = s.at(element, i+1)
	}
	if err != nil {
		return nil, err
	}
	if isNew {
		return append(list[:len(list):len(list)], element), nil // the capacity may be shared
	}
	list[at] = element
	return list, nil
}

// keyed returns the new element for the by-key step fields[i].
func (s *setter) keyed(list []any, i int, isNew bool) (any, error) {
	keys, err := selectorOf(s.fields, i)
	if err != nil {
		return nil, err
	}
	var element any
	if isNew {
		made := map[string]any{}
		keys.complete(made, list)
		element = made
	}
	if element, err = s.at(element, i+1); err != nil {
		return nil, err
	}
	m, ok := element.(map[string]any)
	if !ok {
		return nil, typeMismatch(s.fields[:i+1], element, "map[string]any")
	}
	keys.complete(m, list)
	if !keys.selects(m) {
		return nil, fmt.Errorf("%s: the new value has different keys than the step", pathText(s.fields[:i+1]))
	}
	return m, nil
}

// Delete removes the field or list element at a path, with the steps of [Get]. The elements after it move up. found reports
// whether the field or element existed, possibly null. Emptied maps and lists stay.
//
// A field along the path of a type other than map or list is an error, as in Get. An empty path and a whole path given as a
// single field are errors, too. Delete changes obj's maps in place, like [Set].
func Delete(obj *Object, fields ...string) (found bool, err error) {
	if len(fields) == 0 {
		return false, errors.New("cannot delete without a path: it would be the whole object")
	}
	if err := checkSingle(fields); err != nil {
		return false, err
	}
	if isNil(obj) {
		return false, nil
	}
	last := len(fields) - 1
	if err := checkUnsplit(obj.Object, fields[0]); err != nil {
		return false, err
	}
	parent, found, err := walk(obj.Object, fields[:last], 0)
	if err != nil || !found {
		return false, err
	}
	switch parent := parent.(type) {
	case map[string]any:
		_, found = parent[fields[last]]
		delete(parent, fields[last])
		return found, nil
	case []any:
		at, err := elementIndex(parent, fields, last)
		if err != nil || at < 0 || at >= len(parent) {
			return false, err
		}
		rest := append(parent[:at:at], parent[at+1:]...)
		s := setter{fields: fields[:last], value: rest}
		_, err = s.at(obj.Object, 0)
		return err == nil, err
	default:
		return false, typeMismatch(fields[:last], parent, "map[string]any or []any")
	}
}
