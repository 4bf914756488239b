package plugins

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// child returns the object in a field; nil if there is none.
func child(obj object, path ...string) object {
	for _, name := range path {
		obj, _ = obj[name].(object)
	}
	return obj
}

// ensure returns the object in a field, which it creates if there is none.
func ensure(obj object, name string) object {
	existing, ok := obj[name].(object)
	if !ok {
		existing = object{}
		obj[name] = existing
	}
	return existing
}

func text(obj object, name string) string { s, _ := obj[name].(string); return s }

// objects returns the items of a list that are objects.
func objects(obj object, name string) []object {
	items, _ := obj[name].([]any)
	var out []object
	for _, item := range items {
		if item, ok := item.(object); ok {
			out = append(out, item)
		}
	}
	return out
}

// resourceList has quantities by the names of resources.
type resourceList map[string]resource.Quantity

// quantities returns the resource list in a field. What is no quantity, which the decoder rejects, is left out.
func quantities(obj object, name string) resourceList {
	out := resourceList{}
	for name, value := range child(obj, name) {
		if s, ok := value.(string); ok {
			if q, err := resource.ParseQuantity(s); err == nil {
				out[name] = q
			}
		}
	}
	return out
}

func (l resourceList) names() []string { return slices.Sorted(maps.Keys(l)) }

// add adds the quantities of other.
func (l resourceList) add(other resourceList) {
	for name, q := range other {
		sum := l[name].DeepCopy()
		sum.Add(q)
		l[name] = sum
	}
}

// raise makes each quantity at least that of other.
func (l resourceList) raise(other resourceList) {
	for name, q := range other {
		if current, ok := l[name]; !ok || q.Cmp(current) > 0 {
			l[name] = q
		}
	}
}
