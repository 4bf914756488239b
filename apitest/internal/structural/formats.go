package structural

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// UnrecognizedFormats returns the API server's warnings for unknown formats in the schemas of a CustomResourceDefinition.
func UnrecognizedFormats(definition map[string]any) (warnings []string) {
	for _, version := range nested.Maps(definition, "spec", "versions") {
		walkSchemas(nested.Map(version, "schema", "openAPIV3Schema"), func(schema map[string]any) {
			format := nested.String(schema, "format")
			if format != "" && checkedFormat(nested.String(schema, "type"), format) == "" {
				warnings = append(warnings, fmt.Sprintf("unrecognized format %q", format))
			}
		})
	}
	return warnings
}

// walkSchemas calls visit for a schema and the schemas in it. Properties are visited in the order of their names.
func walkSchemas(schema map[string]any, visit func(map[string]any)) {
	if schema == nil {
		return
	}
	visit(schema)
	subschemas(schema, nil, func(_, _ string, one map[string]any, _ *field.Path) { walkSchemas(one, visit) })
}

// subschemas calls visit for the schemas directly in a schema. key is the name of a property or definition, otherwise "".
func subschemas(schema map[string]any, at *field.Path, visit func(keyword, key string, one map[string]any, at *field.Path)) {
	for _, keyword := range []string{"items", "additionalProperties", "additionalItems", "not"} {
		if one := nested.Map(schema, keyword); one != nil {
			visit(keyword, "", one, at.Child(keyword))
		}
	}
	for _, keyword := range []string{"items", "allOf", "anyOf", "oneOf"} {
		for i, one := range nested.Maps(schema, keyword) {
			visit(keyword, "", one, at.Child(keyword).Index(i))
		}
	}
	for _, keyword := range []string{"properties", "patternProperties", "definitions", "dependencies"} {
		for _, key := range slices.Sorted(maps.Keys(nested.Map(schema, keyword))) {
			if one := nested.Map(schema, keyword, key); one != nil {
				visit(keyword, key, one, at.Child(keyword).Key(key))
			}
		}
	}
}
