package print

import (
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/cli/internal/jsonpathflag"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured/jsonpath"
)

// sorter sorts elements by the first value of a path, in the order of kubectl's --sort-by. It uses kubectl's algorithm, because
// the algorithm is not stable.
type sorter[T any] struct {
	path     string
	elements []T
	keys     []any
	missing  []bool
	err      error
}

func newSorter[T any](elements []T, path string, object func(T) map[string]any) (*sorter[T], error) {
	expression, err := jsonpathflag.Relaxed(path)
	if err != nil {
		return nil, err
	}
	template, err := jsonpath.Parse(expression, &jsonpath.Options{AllowMissingKeys: true})
	if err != nil {
		return nil, fmt.Errorf("sorting error: %w", err)
	}
	s := &sorter[T]{path: path, elements: elements, keys: make([]any, len(elements)), missing: make([]bool, len(elements))}
	found := len(elements) == 0
	for i, element := range elements {
		values, err := template.Values(object(element))
		if err != nil {
			return nil, fmt.Errorf("sorting error: %w", err)
		}
		if s.missing[i] = len(values) == 0; !s.missing[i] {
			s.keys[i] = values[0]
			found = true
		}
	}
	if !found {
		return nil, fmt.Errorf("couldn't find any field with path %q in the list of objects", expression)
	}
	return s, nil
}

func (s *sorter[T]) Len() int { return len(s.elements) }

func (s *sorter[T]) Swap(i, j int) {
	s.elements[i], s.elements[j] = s.elements[j], s.elements[i]
	s.keys[i], s.keys[j] = s.keys[j], s.keys[i]
	s.missing[i], s.missing[j] = s.missing[j], s.missing[i]
}

func (s *sorter[T]) Less(i, j int) bool {
	if s.missing[i] {
		return true
	}
	if s.missing[j] {
		return false
	}
	less, err := isLess(s.keys[i], s.keys[j])
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("sort by %s: %w", s.path, err)
	}
	return less
}

func isLess(a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b != nil, nil
	}
	switch a := a.(type) {
	case int64:
		switch b := b.(type) {
		case int64:
			return a < b, nil
		case float64:
			return float64(a) < b, nil
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return a < b, nil
		case int64:
			return a < float64(b), nil
		}
	case string:
		if b, ok := b.(string); ok {
			return isLessText(a, b), nil
		}
	}
	return false, fmt.Errorf("cannot compare %v with %v: neither two numbers nor two texts", a, b)
}

// isLessText compares quantities by value, and other texts by bytes.
func isLessText(a, b string) bool {
	quantityA, err := resource.ParseQuantity(a)
	if err != nil {
		return a < b
	}
	quantityB, err := resource.ParseQuantity(b)
	if err != nil {
		return a < b
	}
	return quantityA.Cmp(quantityB) < 0
}

func sortObjects(objects func(yield func(map[string]any) bool), path string) (func(yield func(map[string]any) bool), error) {
	var all []map[string]any
	for object := range objects {
		all = append(all, object)
	}
	s, err := newSorter(all, path, func(object map[string]any) map[string]any { return object })
	if err != nil {
		return nil, err
	}
	sort.Sort(s)
	if s.err != nil {
		return nil, s.err
	}
	return func(yield func(map[string]any) bool) {
		for _, object := range all {
			if !yield(object) {
				return
			}
		}
	}, nil
}

// SortRows sorts rows by the field of --sort-by in their objects. The objects must be whole; see Include.
func (f *Flags) SortRows(rows []*dynamic.TableRow) error {
	if len(rows) < 2 { // as in kubectl, the field may then be missing
		return nil
	}
	s, err := newSorter(rows, f.SortBy, func(row *dynamic.TableRow) map[string]any {
		if row.Object == nil {
			return nil
		}
		return row.Object.Object
	})
	if err != nil {
		return err
	}
	sort.Sort(s)
	return s.err
}
