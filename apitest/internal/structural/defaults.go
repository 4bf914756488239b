package structural

import "k8s.io/apimachinery/pkg/runtime"

// setDefaults sets defaults below value. A null in a field that is not nullable counts as absent.
func (n *node) setDefaults(value any) {
	if n == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, property := range n.properties {
			if property.defaultValue == nil {
				continue
			}
			if current, found := value[name]; !found || current == nil && !property.nullable {
				value[name] = runtime.DeepCopyJSONValue(property.defaultValue)
			}
		}
		for name, child := range value {
			if property, ok := n.properties[name]; ok {
				property.setDefaults(child)
			} else if n.additional != nil {
				value[name] = n.additional.orDefault(child)
				n.additional.setDefaults(value[name])
			}
		}
	case []any:
		for i, child := range value {
			if n.items != nil {
				value[i] = n.items.orDefault(child)
				n.items.setDefaults(value[i])
			}
		}
	}
}

func (n *node) orDefault(value any) any {
	if value == nil && !n.nullable {
		return runtime.DeepCopyJSONValue(n.defaultValue)
	}
	return value
}
