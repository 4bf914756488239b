package recorded

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// ToV2 converts a definition from OpenAPI v3 to v2: defaults are removed, an allOf with a single reference becomes the reference,
// and reference paths change. The keys are sorted.
func ToV2(definition string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(strings.ReplaceAll(definition, ReferenceV3, ReferenceV2)))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return "", err
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(schemaToV2(value)); err != nil {
		return "", err
	}
	return strings.TrimSuffix(buf.String(), "\n"), nil
}

func schemaToV2(schema map[string]any) map[string]any {
	delete(schema, "default")
	if all := nested.Slice(schema, "allOf"); len(all) == 1 {
		if only, _ := all[0].(map[string]any); only["$ref"] != nil {
			delete(schema, "allOf")
			schema["$ref"] = only["$ref"]
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if inner, is := schema[key].(map[string]any); is {
			schema[key] = schemaToV2(inner)
		}
	}
	properties := nested.Map(schema, "properties")
	for name, property := range properties {
		if inner, is := property.(map[string]any); is {
			properties[name] = schemaToV2(inner)
		}
	}
	return schema
}
