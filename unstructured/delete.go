package unstructured

import "errors"

// Delete removes the field or the list's element at a path, whose steps are those of [Get]; the elements behind it
// move up. It tells whether there was one; a field that is null is one. What it leaves empty stays.
//
// A field on the way that is neither map nor list is an error, as in Get, and so are an empty path and a whole path given
// as one field. Delete changes obj's maps in place, as [Set] does.
func Delete(obj *Object, fields ...string) (found bool, err error) {
	if len(fields) == 0 {
		return false, errors.New("cannot delete without a path: it would be the whole object")
	}
	if obj == nil || obj.Object == nil {
		return false, nil
	}
	last := len(fields) - 1
	if err := checkUnsplitIn(obj.Object, fields[0]); err != nil {
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
		s := setting{fields: fields[:last], value: rest}
		_, err = s.at(obj.Object, 0)
		return err == nil, err
	default:
		return false, mismatch(fields[:last], parent, "map[string]any or []any")
	}
}
