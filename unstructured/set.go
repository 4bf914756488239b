package unstructured

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anykind/anykind/internal/jsonread"
)

// Set writes value at a path, whose steps are those of [Get], and replaces what is there, of whatever type.
//
// Maps that are missing or null on the way are made. At a list, the index behind the last element appends; a by-key
// step that selects nothing appends an element that has those keys, and begins a list where there is none. An element
// that is written as a whole gets the keys of its step, and is rejected if it has others. A number for a step where
// nothing is yet is rejected, since it may be an index or a field's name. Without a path, value is the whole object.
//
// The value is copied and normalized to what [Decode] returns for what [Encode] writes: any integer becomes int64 if it
// fits and otherwise float64, float32 and float64 become float64 or, without a fraction, int64; typed slices, maps,
// structs with their json tags, pointers, times and json.Marshalers become maps, lists and scalars; nil is null. So
// DeepCopy, which panics on an int, never does on what Set wrote. A value that JSON cannot have is an error that
// names its path, as in Encode.
//
// Whatever else does not fit is an error that names its path and both types, and so is a whole path given as one field,
// as in [Get]. An error leaves obj as it was. Set changes obj's maps in place: copy an object that others see, such as one
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

// normalize returns a copy of v as Decode would return it.
func normalize(v any, fields []string) (any, error) {
	if len(fields) > jsonread.MaxDepth {
		return nil, fmt.Errorf("%s: nested deeper than %d", pathText(fields[:1]), jsonread.MaxDepth)
	}
	switch obj := v.(type) {
	case Object:
		v = obj.Object // it marshals itself by its address alone
	case Lazy:
		v = &obj // so does it
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

// setter is one call of Set. Nothing is changed before everything has been found to fit.
type setter struct {
	fields []string
	value  any // a copy
}

// at returns the new value for v, which is at fields[:i].
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

// missing returns the new value at fields[:i], where nothing is.
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

// inList sets or appends the element of list that fields[i] selects.
func (s *setter) inList(list []any, i int) (any, error) {
	at, err := elementIndex(list, s.fields, i)
	if err != nil {
		return nil, err
	}
	isNew := at < 0 || at == len(list)
	var element any
	switch {
	case at > len(list):
		return nil, fmt.Errorf("%s: is []any of %d, which index %s is beyond; %d appends", pathText(s.fields[:i]), len(list), s.fields[i], len(list))
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
		return append(list[:len(list):len(list)], element), nil // others may hold what is behind the list's end
	}
	list[at] = element
	return list, nil
}

// keyed returns an element that the by-key step fields[i] selects.
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
		return nil, fmt.Errorf("%s: would have other keys than its step", pathText(s.fields[:i+1]))
	}
	return m, nil
}

// Delete removes the field or the list's element at a path, whose steps are those of [Get]; the elements behind it
// move up. found reports whether there was one; a field that is null is one. What becomes empty stays.
//
// A field on the way that is neither map nor list is an error, as in Get, and so are an empty path and a whole path given
// as one field. Delete changes obj's maps in place, as [Set] does.
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
