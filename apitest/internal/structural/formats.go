package structural

import (
	"fmt"
	"maps"
	"slices"

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
	for _, name := range []string{"items", "additionalProperties", "additionalItems", "not"} {
		one, _ := schema[name].(map[string]any)
		walkSchemas(one, visit)
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		for _, one := range nested.Maps(schema, name) {
			walkSchemas(one, visit)
		}
	}
	for _, name := range []string{"properties", "patternProperties", "definitions"} {
		children := nested.Map(schema, name)
		for _, child := range slices.Sorted(maps.Keys(children)) {
			one, _ := children[child].(map[string]any)
			walkSchemas(one, visit)
		}
	}
}
