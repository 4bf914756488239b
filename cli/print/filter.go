package print

import (
	"iter"
	"maps"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
)

// pull is iter.Pull for objects.
func pull(objects func(yield func(map[string]any) bool)) (func() (map[string]any, bool), func()) {
	return iter.Pull(iter.Seq[map[string]any](objects))
}

// filter removes objects and fields from the output.
type filter struct {
	where             *Where
	neat              bool
	hideManagedFields bool
}

func (f *Flags) newFilter(format string) (*filter, error) {
	// As in kubectl, --show-managed-fields has an effect on these formats only.
	encodes := format == "json" || format == "yaml" || format == "kyaml"
	result := &filter{neat: f.Neat, hideManagedFields: encodes && !f.ShowManagedFields}
	var err error
	result.where, err = ParseWhere(f.Where)
	return result, err
}

// apply returns the object to print and whether to print it. The result shares unchanged parts with the argument.
func (f *filter) apply(object map[string]any) (map[string]any, bool, error) {
	if keep, err := f.where.holds(object); err != nil || !keep {
		return nil, false, err
	}
	if f.neat {
		return inventory.Portable(&unstructured.Object{Object: object}).Object, true, nil
	}
	if f.hideManagedFields {
		return withoutManagedFields(object), true, nil
	}
	return object, true, nil
}

func withoutManagedFields(object map[string]any) map[string]any {
	metadata := nested.Map(object, "metadata")
	if _, ok := metadata["managedFields"]; !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}
