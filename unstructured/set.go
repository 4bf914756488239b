package unstructured

import (
	"fmt"
	"slices"
)

// Set writes value at a path, whose steps are those of [Get]. What is there before is replaced, of whatever type.
//
// Maps that are missing or null on the way are made. At a list, the index behind the last element appends; a by-key
// step that selects nothing appends an element that has those keys, and begins a list where there is none. An element
// that is written as a whole gets the keys of its step, and is refused if it has others. A number for a step where
// nothing is yet is refused, since it may be an index or a field's name. Without a path, value is the whole object.
//
// The value is copied, and becomes what [Decode] makes of what [Encode] writes: any integer int64 if it fits and
// otherwise float64, float32 and float64 float64 or, without a fraction, int64; typed slices, maps, structs with their
// json tags, pointers, times and whatever marshals itself become maps, lists and scalars; nil is null. So
// DeepCopy, which panics on an int, never does on what Set wrote. A value that JSON cannot have is an error that
// names its path, as in Encode.
//
// Whatever else does not fit is an error that names its path and both types, and so is a whole path given as one field,
// as in [Get]. An error leaves obj as it was. Set
// changes obj's maps in place: an object that others see, out of a cache for instance, is to be copied first.
func Set(obj *Object, value any, fields ...string) error {
	if obj == nil {
		return fmt.Errorf("%s: cannot be set in a nil object", pathText(fields))
	}
	plain, err := normal(value, fields)
	if err != nil {
		return err
	}
	s := setting{fields: fields, value: plain}
	root, err := s.at(obj.Object, 0)
	if err != nil {
		return err
	}
	m, ok := root.(map[string]any)
	if !ok {
		return mismatch(fields, root, "map[string]any")
	}
	obj.Object = m
	return nil
}

// normal is v as Decode would make it, a copy.
func normal(v any, fields []string) (any, error) {
	if len(fields) > maxDepth {
		return nil, fmt.Errorf("%s: nested deeper than %d", pathText(fields[:1]), maxDepth)
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
			err = at(step(field), err)
		}
		return nil, err
	}
	return decodeValue(data)
}

// A setting is one call of Set. Nothing is changed before all has been found to fit.
type setting struct {
	fields []string
	value  any // the setting's own
}

// at returns what v, which is at fields[:i], is to become.
func (s *setting) at(v any, i int) (any, error) {
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
		if i == 0 {
			if err := checkUnsplitIn(parent, s.fields[0]); err != nil {
				return nil, err
			}
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
		return nil, mismatch(s.fields[:i], v, "map[string]any or []any")
	}
}

// missing makes what is at fields[:i], where nothing is.
func (s *setting) missing(i int) (any, error) {
	field := s.fields[i]
	switch {
	case i > 0 && isSelector(field):
		return s.inList(nil, i)
	case i > 0 && isIndex(field):
		return nil, fmt.Errorf("%s: is not there, and %q may be an index or a field's name: set it to a list or a map first",
			pathText(s.fields[:i]), field)
	}
	if i == 0 {
		if err := checkUnsplitIn(nil, field); err != nil {
			return nil, err
		}
	}
	child, err := s.at(nil, i+1)
	if err != nil {
		return nil, err
	}
	return map[string]any{field: child}, nil
}

// inList sets or appends the element of list that fields[i] stands for.
func (s *setting) inList(list []any, i int) (any, error) {
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

// keyed makes an element that the by-key step fields[i] selects.
func (s *setting) keyed(list []any, i int, isNew bool) (any, error) {
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
		return nil, mismatch(s.fields[:i+1], element, "map[string]any")
	}
	keys.complete(m, list)
	if !keys.selects(m) {
		return nil, fmt.Errorf("%s: would have other keys than its step", pathText(s.fields[:i+1]))
	}
	return m, nil
}
