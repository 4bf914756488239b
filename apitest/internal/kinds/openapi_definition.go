package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/recorded"
)

// definitionOpenAPI returns the definitions of a CRD's kind in all its versions.
func definitionOpenAPI(d map[string]any) *openapi {
	o := newOpenAPI(func() (map[string]string, error) {
		all, err := recorded.ReadOpenAPI()
		if err != nil {
			return nil, err
		}
		own := map[string]string{}
		for _, v := range nested.Maps(d, "spec", "versions") {
			name := modelName(nested.String(d, "spec", "group"), nested.String(v, "name"), nested.String(d, "spec", "names", "kind"))
			if own[name], err = publishSchema(d, v, false); err != nil {
				return nil, fmt.Errorf("OpenAPI of %s: %w", nested.String(d, "metadata", "name"), err)
			}
		}
		return all.Closure(slices.Collect(maps.Keys(own)), own)
	})
	return o
}

// publishSchema returns a version's schema as published by OpenAPI, with kind, apiVersion and metadata. For OpenAPI v2, it omits
// fields not supported by kubectl.
func publishSchema(d, v map[string]any, v2 bool) (string, error) {
	schema := nested.Map(v, "schema", "openAPIV3Schema")
	published := map[string]any{"type": "object"}
	preserves := nested.Bool(schema, "x-kubernetes-preserve-unknown-fields") || nested.Bool(d, "spec", "preserveUnknownFields")
	if schema != nil && (!v2 || !preserves) {
		published = publishNode(schema, v2)
		properties := nested.Map(published, "properties")
		properties = maps.Clone(properties)
		if properties == nil {
			properties = map[string]any{}
		}
		maps.Copy(properties, typeMetaProperties(v2))
		published["properties"] = properties
	}
	published["x-kubernetes-group-version-kind"] = []any{map[string]any{
		"group": nested.String(d, "spec", "group"), "version": nested.String(v, "name"), "kind": nested.String(d, "spec", "names", "kind"),
	}}
	if fields := selectableFields(v); fields != nil {
		published["x-kubernetes-selectable-fields"] = fields
	}
	return compactJSON(published)
}

func selectableFields(v map[string]any) []any {
	var fields []any
	for _, field := range nested.Maps(v, "selectableFields") {
		fields = append(fields, map[string]any{"fieldPath": strings.TrimPrefix(nested.String(field, "jsonPath"), ".")})
	}
	return fields
}

// publishedKeys are the fields of a structural schema copied to OpenAPI unchanged, unless they are empty.
var publishedKeys = []string{
	"type", "nullable", "description", "title", "default", "externalDocs", "example", "format", "maximum", "exclusiveMaximum",
	"minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum",
	"maxProperties", "minProperties", "required", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
	"x-kubernetes-validations",
}

// publishNode returns a node of a structural schema as published by OpenAPI.
func publishNode(node map[string]any, v2 bool) map[string]any {
	published := publishValues(node)
	if properties := nested.Map(node, "properties"); len(properties) > 0 {
		all := make(map[string]any, len(properties))
		for name, property := range properties {
			inner, _ := property.(map[string]any)
			all[name] = publishNode(inner, v2)
		}
		published["properties"] = all
	}
	if items, is := node["items"].(map[string]any); is {
		published["items"] = publishNode(items, v2)
	}
	switch additional := node["additionalProperties"].(type) {
	case map[string]any:
		published["additionalProperties"] = publishNode(additional, v2)
	case bool:
		published["additionalProperties"] = additional
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if all := nested.Slice(node, key); len(all) > 0 {
			published[key] = publishNested(all)
		}
	}
	if not, is := node["not"].(map[string]any); is {
		published["not"] = publishNode(not, false)
	}
	if nested.Bool(node, "x-kubernetes-int-or-string") {
		unfoldIntOrString(published)
	}
	if v2 {
		toV2(node, published)
	}
	if nested.Bool(published, "x-kubernetes-embedded-resource") && (!v2 || !nested.Bool(published, "x-kubernetes-preserve-unknown-fields")) {
		embedResource(published, v2)
	}
	return published
}

func publishValues(node map[string]any) map[string]any {
	published := map[string]any{}
	for _, key := range publishedKeys {
		switch value := node[key].(type) {
		case nil:
		case bool:
			if value || key == "default" || key == "example" {
				published[key] = value
			}
		case string:
			if value != "" || key == "default" || key == "example" {
				published[key] = value
			}
		case []any:
			if len(value) > 0 || key == "default" || key == "example" {
				published[key] = value
			}
		default:
			published[key] = value
		}
	}
	return published
}

func publishNested(all []any) []any {
	published := make([]any, 0, len(all))
	for _, one := range all {
		inner, _ := one.(map[string]any)
		published = append(published, publishNode(inner, false))
	}
	return published
}

// unfoldIntOrString adds the two types of an int-or-string, unless the schema has them.
func unfoldIntOrString(published map[string]any) {
	both := []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	if isIntOrString(published["anyOf"]) {
		return
	}
	all := nested.Slice(published, "allOf")
	if len(all) > 0 {
		if first, _ := all[0].(map[string]any); isIntOrString(first["anyOf"]) {
			return
		}
	}
	if published["anyOf"] == nil {
		published["anyOf"] = both
		return
	}
	published["allOf"] = append([]any{map[string]any{"anyOf": both}}, all...)
}

func isIntOrString(anyOf any) bool {
	both, _ := anyOf.([]any)
	if len(both) != 2 {
		return false
	}
	first, _ := both[0].(map[string]any)
	second, _ := both[1].(map[string]any)
	return first["type"] == "integer" && second["type"] == "string" && len(first) == 1 && len(second) == 1
}

// toV2 removes fields not supported by OpenAPI v2, or by kubectl's use of it.
func toV2(node, published map[string]any) {
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "default"} {
		delete(published, key)
	}
	preserves := published["x-kubernetes-preserve-unknown-fields"] != nil
	if published["nullable"] != nil {
		for _, key := range []string{"type", "nullable", "items", "properties"} {
			delete(published, key)
		}
	}
	if preserves {
		delete(published, "items")
		delete(published, "properties")
	}
	if published["items"] == nil && published["type"] == "array" || preserves && published["type"] == "object" {
		delete(published, "type")
	}
	properties := nested.Map(node, "properties")
	required := nested.Slice(published, "required")
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		key, _ := name.(string)
		return published["properties"] != nil && nested.Bool(properties, key, "nullable")
	})
	if len(required) == 0 || nested.Bool(node, "additionalProperties", "nullable") {
		delete(published, "required")
	} else {
		published["required"] = required
	}
}

// embedResource adds apiVersion, kind and metadata of an embedded resource.
func embedResource(published map[string]any, v2 bool) {
	properties := nested.Map(published, "properties")
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	properties["apiVersion"] = map[string]any{"type": "string", "description": embeddedAPIVersion}
	properties["kind"] = map[string]any{"type": "string", "description": embeddedKind}
	properties["metadata"] = typeMetaProperties(v2)["metadata"]
	published["properties"] = properties
	required := nested.Slice(published, "required")
	required = slices.Clone(required)
	for _, name := range []any{"kind", "apiVersion"} {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	published["required"] = required
}

const (
	conventions        = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
	embeddedAPIVersion = "apiVersion defines the versioned schema of this representation of an object. More info: " + conventions + "#resources"
	embeddedKind       = "kind is a string value representing the type of this object. In CamelCase. More info: " + conventions + "#types-kinds"
	apiVersionText     = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: " + conventions + "#resources"
	kindText           = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: " + conventions + "#types-kinds"
	metadataText       = "Standard object's metadata. More info: " + conventions + "#metadata"
	objectMeta         = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

func typeMetaProperties(v2 bool) map[string]any {
	metadata := map[string]any{"description": metadataText, "allOf": []any{map[string]any{"$ref": recorded.ReferenceV3 + objectMeta}}}
	if v2 {
		metadata = map[string]any{"description": metadataText, "$ref": recorded.ReferenceV2 + objectMeta}
	}
	return map[string]any{
		"apiVersion": map[string]any{"type": "string", "description": apiVersionText},
		"kind":       map[string]any{"type": "string", "description": kindText},
		"metadata":   metadata,
	}
}

// templateReplacer replaces the placeholders of a recorded template by the names of a version.
func (r *Resource) templateReplacer() *strings.Replacer {
	article := " a "
	switch first, _ := utf8.DecodeRuneInString(r.Kind); {
	case strings.HasSuffix(r.Kind, "s") && !strings.HasSuffix(r.Kind, "ss"):
		article = " "
	case strings.ContainsRune("aeiouAEIOU", first):
		article = " an "
	}
	group := strings.TrimSuffix(r.Group, ".k8s.io")
	return strings.NewReplacer(
		" a "+recorded.TemplateKind, article+r.Kind,
		modelName(recorded.TemplateGroup, recorded.TemplateVersion, ""), modelName(r.Group, r.Version, ""),
		recorded.TemplateGroup, r.Group,
		operationID(recorded.TemplateGroup, true)+operationID(recorded.TemplateVersion, true), operationID(group, true)+operationID(r.Version, true),
		operationID(recorded.TemplateGroup, false)+"_"+recorded.TemplateVersion, operationID(group, false)+"_"+operationID(r.Version, false),
		recorded.TemplateVersion, r.Version,
		recorded.TemplatePlural, r.Plural,
		recorded.TemplateKind, r.Kind,
		recorded.TemplateListKind, r.ListKind,
	)
}

// operationID returns a name in the form of operation IDs: camel case without punctuation.
func operationID(name string, capitalize bool) string {
	var id strings.Builder
	for i, char := range name {
		switch {
		case !unicode.IsLetter(char) && char != '_' && (i == 0 || !unicode.IsDigit(char)):
			capitalize = true
			continue
		case capitalize:
			char = unicode.ToUpper(char)
			capitalize = false
		}
		id.WriteRune(char)
	}
	return id.String()
}

func compactJSON(value any) (string, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(buf.String(), "\n"), err
}
