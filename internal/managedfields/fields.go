// Package managedfields computes changes of metadata.managedFields. Its functions read no schema and send no request.
//
// # Fields
//
// FieldsV1 is a tree of JSON objects. A name is an element of a path: f:FIELD, k:{"KEY":VALUE} for a list item with keys, v:VALUE for
// an item of a set, i:INDEX. Members of the set are the paths with an empty object, or with an object that has the name ".". See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
package managedfields

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Union returns the paths of a or b.
func Union(a, b map[string]any) map[string]any {
	return combine(a, b, func(inA, inB bool) bool { return inA || inB })
}

// Intersection returns the paths of both a and b.
func Intersection(a, b map[string]any) map[string]any {
	return combine(a, b, func(inA, inB bool) bool { return inA && inB })
}

// Difference returns the paths of a without the paths of b.
func Difference(a, b map[string]any) map[string]any {
	return combine(a, b, func(inA, inB bool) bool { return inA && !inB })
}

// Contains reports whether a has all paths of b.
func Contains(a, b map[string]any) bool { return len(Difference(b, a)) == 0 }

// Paths returns the paths of the set, sorted by their elements.
func Paths(fields map[string]any) [][]string {
	var paths [][]string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		child, _ := fields[name].(map[string]any)
		if name == self {
			continue
		}
		if isMember(child) {
			paths = append(paths, []string{name})
		}
		for _, below := range Paths(child) {
			paths = append(paths, append([]string{name}, below...))
		}
	}
	return paths
}

// Path returns the set of a single path.
func Path(elements ...string) map[string]any {
	fields := map[string]any{}
	for i := len(elements) - 1; i >= 0; i-- {
		fields = map[string]any{elements[i]: fields}
	}
	return fields
}

// self marks the path of its object as a member.
const self = "."

func isMember(fields map[string]any) bool {
	_, found := fields[self]
	return found || len(fields) == 0
}

// HasElements reports whether fields has paths of its own, besides its membership.
func HasElements(fields map[string]any) bool {
	_, found := fields[self]
	return len(fields) > 1 || len(fields) == 1 && !found
}

// combine returns the paths for which keep is true. The result shares nothing with a and b.
func combine(a, b map[string]any, keep func(inA, inB bool) bool) map[string]any {
	result := map[string]any{}
	visit := func(name string) {
		childA, inA := a[name].(map[string]any)
		childB, inB := b[name].(map[string]any)
		add(result, name, combine(childA, childB, keep), keep(inA && isMember(childA), inB && isMember(childB)))
	}
	for name := range a {
		if name != self {
			visit(name)
		}
	}
	for name := range b {
		if _, visited := a[name]; name != self && !visited {
			visit(name)
		}
	}
	return result
}

// add adds an element with the paths below it.
func add(fields map[string]any, name string, below map[string]any, isMember bool) {
	switch {
	case len(below) == 0 && !isMember:
		return
	case len(below) > 0 && isMember:
		below[self] = map[string]any{}
	}
	fields[name] = below
}

var errMalformed = errors.New("malformed managedFields")

// validate returns an error unless fields is a FieldsV1. Unknown types of path elements are permitted.
func validate(fields map[string]any) error {
	for name, value := range fields {
		child, isMap := value.(map[string]any)
		switch {
		case !isMap:
			return fmt.Errorf("%w: the value of %q is not an object", errMalformed, name)
		case name != self && (len(name) < 2 || name[1] != ':'):
			return fmt.Errorf("%w: %q is not an element of a path", errMalformed, name)
		}
		if err := validate(child); err != nil {
			return err
		}
	}
	return nil
}
