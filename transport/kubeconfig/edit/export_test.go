package edit

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// EncodeYAML encodes a value with its secrets.
func EncodeYAML(value any) ([]byte, error) {
	return yaml.Marshal(encodeValue(reflect.ValueOf(value), false))
}
