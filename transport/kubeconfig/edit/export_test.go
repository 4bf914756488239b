package edit

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// EncodeYAML encodes a value with its secrets.
func EncodeYAML(value any) ([]byte, error) {
	node, err := encodeValue(reflect.ValueOf(value), false)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(node)
}
