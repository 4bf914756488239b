package plugins

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// resourceList maps resource names to quantities.
type resourceList map[string]resource.Quantity

// quantities returns the resource list in a field. Invalid quantities are omitted; the decoder rejects them.
func quantities(obj object, name string) resourceList {
	out := resourceList{}
	for name, value := range nested.Map(obj, name) {
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
