package plugins

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// child returns the object in a field, or nil.
func child(obj object, path ...string) object {
	for _, name := range path {
		obj, _ = obj[name].(object)
	}
	return obj
}

// ensure returns the object in a field, and creates it if it is missing.
func ensure(obj object, name string) object {
	existing, ok := obj[name].(object)
	if !ok {
		existing = object{}
		obj[name] = existing
	}
	return existing
}

func text(obj object, name string) string { s, _ := obj[name].(string); return s }

// objects returns the items of a list, without items of other types.
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

// resourceList maps resource names to quantities.
type resourceList map[string]resource.Quantity

// quantities returns the resource list in a field. Invalid quantities are omitted; the decoder rejects them.
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

// add adds other to l.
func (l resourceList) add(other resourceList) {
	for name, q := range other {
		sum := l[name].DeepCopy()
		sum.Add(q)
		l[name] = sum
	}
}

// raise sets l to max(l, other) for each quantity.
func (l resourceList) raise(other resourceList) {
	for name, q := range other {
		if current, ok := l[name]; !ok || q.Cmp(current) > 0 {
			l[name] = q
		}
	}
}
