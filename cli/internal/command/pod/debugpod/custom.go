package debugpod

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// ParseCustom returns the fields of a container from a JSON or YAML file.
func ParseCustom(data []byte) (map[string]any, error) {
	content, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	const head = `{"apiVersion":"v1","kind":"Container","spec":`
	obj, err := unstructured.Decode(slices.Concat([]byte(head), content, []byte("}")))
	if err != nil {
		return nil, err
	}
	fields, ok := obj.Object["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %T, not an object", obj.Object["spec"])
	}
	for _, name := range []string{"name", "command", "image", "lifecycle", "volumeDevices"} {
		if value := fields[name]; value != nil && value != "" {
			return nil, errUnmodifiable
		}
	}
	return fields, nil
}

var errUnmodifiable = errors.New("name, command, image, lifecycle and volume devices are not modifiable via custom profile")

// IsUnmodifiable reports whether an error of ParseCustom is about a field forbidden in a profile.
func IsUnmodifiable(err error) bool { return errors.Is(err, errUnmodifiable) }

// mergeKeys are the keys of the lists in a container whose elements a strategic merge patch merges.
var mergeKeys = map[string]string{"env": "name", "ports": "containerPort", "volumeMounts": "mountPath"}

// merge merges the custom fields into a container, as a strategic merge patch does.
func (o *Options) merge(container map[string]any) {
	mergeInto(container, (&unstructured.Object{Object: o.Custom}).DeepCopy().Object)
}

func mergeInto(fields, patch map[string]any) {
	for name, value := range patch {
		if value == nil {
			continue // as in kubectl, whose type has no null
		}
		if changes, ok := value.(map[string]any); ok {
			if nested.Map(fields, name) != nil {
				mergeInto(nested.Map(fields, name), changes)
				continue
			}
		}
		if key := mergeKeys[name]; key != "" {
			fields[name] = mergeLists(nested.List(fields, name), nested.List(patch, name), key)
			continue
		}
		fields[name] = value
	}
}

// mergeLists merges elements with an equal key. The elements of the patch are first, as in a strategic merge patch.
func mergeLists(list, patch []any, key string) []any {
	list = slices.Clone(list)
	var merged []any
	for _, element := range patch {
		changes, _ := element.(map[string]any)
		if i := slices.IndexFunc(list, func(old any) bool { return nested.Value(old, key) == changes[key] }); i >= 0 {
			if old, ok := list[i].(map[string]any); ok {
				mergeInto(old, changes)
				changes = old
			}
			list = slices.Delete(list, i, i+1)
		}
		merged = append(merged, changes)
	}
	return append(merged, list...)
}
