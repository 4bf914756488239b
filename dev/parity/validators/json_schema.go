//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	openAPIReference    = "#/components/schemas/"
	jsonSchemaReference = "#/definitions/"
)

// writeJSONSchemas writes a JSON schema for each kind in the OpenAPI documents of a folder, as openapi2jsonschema.py of kubeconform
// does: fields that are not named are rejected, int-or-string has two types, and optional fields of built-in kinds may be null.
// Files are named GROUP_VERSION_kind.json, and VERSION_VERSION_kind.json of the core group.
func writeJSONSchemas(documents, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return filepath.WalkDir(documents, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // below the caller's folder
		if err != nil {
			return err
		}
		var document struct {
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(data, &document); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return writeKinds(document.Components.Schemas, dir)
	})
}

func writeKinds(components map[string]any, dir string) error {
	definitions := map[string]any{}
	for name, component := range components {
		schema := replaceIntOrString(withoutFurtherFields(component))
		if strings.HasPrefix(name, "io.k8s.") {
			schema = allowNull(schema, nil, nil)
		}
		definitions[name] = schema
	}
	for name, component := range components {
		fields, _ := component.(map[string]any)
		kinds, _ := fields["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			one, _ := kind.(map[string]any)
			if err := writeKind(definitions, name, one, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeKind(definitions map[string]any, name string, kind map[string]any, dir string) error {
	used := map[string]any{}
	addUsed(used, definitions, name)
	group := fmt.Sprint(kind["group"])
	if group == "" {
		group = fmt.Sprint(kind["version"])
	}
	data, err := json.Marshal(map[string]any{"$ref": jsonSchemaReference + name, "definitions": used})
	if err != nil {
		return err
	}
	file := strings.ToLower(fmt.Sprintf("%s_%s_%s.json", group, kind["version"], kind["kind"]))
	return os.WriteFile(filepath.Join(dir, file), data, 0o600)
}

// addUsed adds a definition and the definitions in its references. References get their form in JSON schemas.
func addUsed(used, definitions map[string]any, name string) {
	if _, found := used[name]; found {
		return
	}
	used[name] = definitions[name]
	eachReference(definitions[name], func(schema map[string]any, target string) {
		schema["$ref"] = jsonSchemaReference + target
		addUsed(used, definitions, target)
	})
}

func eachReference(value any, use func(schema map[string]any, target string)) {
	switch value := value.(type) {
	case map[string]any:
		if reference, isText := value["$ref"].(string); isText {
			use(value, strings.TrimPrefix(strings.TrimPrefix(reference, openAPIReference), jsonSchemaReference))
		}
		for _, child := range value {
			eachReference(child, use)
		}
	case []any:
		for _, child := range value {
			eachReference(child, use)
		}
	}
}

// withoutFurtherFields sets additionalProperties to false beside properties. As in the script, schemas in lists stay as they are. Unlike
// the script, it takes no field with the name properties for the keyword: kubeconform cannot read the schema then.
func withoutFurtherFields(value any) any {
	schema, isObject := value.(map[string]any)
	if !isObject {
		return value
	}
	if _, found := schema["properties"]; found {
		if _, found := schema["additionalProperties"]; !found {
			schema["additionalProperties"] = false
		}
	}
	for name, child := range schema {
		fields, isFields := child.(map[string]any)
		if name != "properties" || !isFields {
			withoutFurtherFields(child)
			continue
		}
		for _, field := range fields {
			withoutFurtherFields(field)
		}
	}
	return schema
}

func replaceIntOrString(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value["format"] == "int-or-string" {
			return map[string]any{"oneOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "integer"}}}
		}
		for name, child := range value {
			value[name] = replaceIntOrString(child)
		}
	case []any:
		for i, child := range value {
			value[i] = replaceIntOrString(child)
		}
	}
	return value
}

// allowNull adds the type null to schemas, except for fields of objects with required fields.
func allowNull(value any, parent, grandparent map[string]any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			if text, isText := child.(string); isText && name == "type" && text != "null" && grandparent["required"] == nil {
				value[name] = []any{text, "null"}
			} else {
				value[name] = allowNull(child, value, parent)
			}
		}
	case []any:
		for i, child := range value {
			value[i] = allowNull(child, nil, grandparent)
		}
	}
	return value
}
