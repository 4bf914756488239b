package structural

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// position is the position of a schema: the root, array items, a field, or a nested value validation such as allOf. A nested
// value validation must not define structure.
type position int

const (
	atRoot position = iota
	atItems
	atField
)

// ValidateSchema returns the violations of structural schema rules, and further errors of the API server.
func ValidateSchema(schema map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if nested.Bool(schema, "nullable") {
		errs = append(errs, field.Forbidden(at.Child("nullable"), "nullable cannot be true at the root"))
	}
	unsupported := unsupportedKeyword(schema)
	if unsupported == "" {
		if structural := structuralErrors(schema, atRoot, at); len(structural) > 0 {
			errs = append(errs, structural...)
		} else {
			errs = append(errs, defaultErrors(schema, at, true, nil)...)
		}
	}
	errs = append(errs, standardErrors(schema, at, standardContext{root: true})...)
	if unsupported != "" && len(errs) == 0 {
		errs = append(errs, field.Invalid(at, "", fmt.Sprintf("OpenAPIV3Schema '%s' is not supported", unsupported)))
	}
	return errs
}

// unsupportedKeyword returns a keyword that no structural schema can have, or "". The API server does not check the structure of a
// schema with such a keyword.
func unsupportedKeyword(schema map[string]any) (keyword string) {
	walkSchemas(schema, func(schema map[string]any) {
		for _, name := range []string{"id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"} {
			children, isMap := schema[name].(map[string]any)
			if isEmpty := isMap && len(children) == 0 && name != "additionalItems"; schema[name] != nil && schema[name] != "" && !isEmpty {
				keyword = name
			}
		}
		if preserve, ok := schema["x-kubernetes-preserve-unknown-fields"].(bool); ok && !preserve {
			keyword = "x-kubernetes-preserve-unknown-fields"
		}
		if len(nested.Slice(schema, "items")) > 0 {
			keyword = "items"
		}
	})
	return keyword
}

func structuralErrors(schema map[string]any, where position, at *field.Path) field.ErrorList {
	if schema == nil {
		return nil
	}
	var errs field.ErrorList
	typ := nested.String(schema, "type")
	items := nested.Map(schema, "items")
	embedded := nested.Bool(schema, "x-kubernetes-embedded-resource")
	preserve := nested.Bool(schema, "x-kubernetes-preserve-unknown-fields")
	intOrString := nested.Bool(schema, "x-kubernetes-int-or-string")
	if typ == "array" && items == nil {
		errs = append(errs, field.Required(at.Child("items"), "must be specified"))
	}
	errs = append(errs, structuralErrors(items, atItems, at.Child("items"))...)
	properties := nested.Map(schema, "properties")
	for name, property := range properties {
		property, _ := property.(map[string]any)
		errs = append(errs, structuralErrors(property, atField, at.Child("properties").Key(name))...)
	}
	if schema["additionalProperties"] != nil {
		if where == atRoot {
			errs = append(errs, field.Forbidden(at.Child("additionalProperties"), "must not be used at the root"))
		}
		errs = append(errs, structuralErrors(nested.Map(schema, "additionalProperties"), atField, at.Child("additionalProperties"))...)
		if embedded {
			errs = append(errs, field.Forbidden(at.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"))
		}
	}
	if intOrString && preserve {
		errs = append(errs, field.Invalid(at.Child("x-kubernetes-preserve-unknown-fields"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	if intOrString && embedded {
		errs = append(errs, field.Invalid(at.Child("x-kubernetes-embedded-resource"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	errs = append(errs, valueErrors(schema, at, isIntOrString(nested.Slice(schema, "anyOf")), firstIsIntOrString(schema))...)
	errs = append(errs, typeErrors(typ, where, embedded, intOrString || preserve, at)...)
	if where == atRoot || embedded {
		errs = append(errs, metaErrors(properties, where, at.Child("properties"))...)
	}
	if embedded && !preserve && len(properties) == 0 {
		errs = append(errs, field.Required(at.Child("properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
	}
	if where == atRoot {
		errs = append(errs, completenessErrors(schema, schema, at)...)
	}
	return errs
}

func typeErrors(typ string, where position, embedded, untyped bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case embedded && typ == "":
		errs = append(errs, field.Required(at.Child("type"), "must be object if x-kubernetes-embedded-resource is true"))
	case embedded && typ != "object":
		errs = append(errs, field.Invalid(at.Child("type"), typ, "must be object if x-kubernetes-embedded-resource is true"))
	case typ == "" && !untyped:
		errs = append(errs, field.Required(at.Child("type"), []string{
			"must not be empty at the root", "must not be empty for specified array items", "must not be empty for specified object fields",
		}[where]))
	}
	if where == atRoot && typ != "" && typ != "object" {
		errs = append(errs, field.Invalid(at.Child("type"), typ, "must be object at the root"))
	}
	return errs
}

// metaErrors checks the schemas of apiVersion, kind and metadata of a resource.
func metaErrors(properties map[string]any, where position, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{"kind", "apiVersion"} {
		if property := nested.Map(properties, name); property != nil && nested.String(property, "type") != "string" {
			errs = append(errs, field.Invalid(at.Key(name).Child("type"), nested.String(property, "type"), "must be string"))
		}
	}
	metadata := nested.Map(properties, "metadata")
	if metadata == nil {
		return errs
	}
	if nested.String(metadata, "type") != "object" {
		errs = append(errs, field.Invalid(at.Key("metadata").Child("type"), nested.String(metadata, "type"), "must be object"))
	}
	if where != atRoot {
		return errs
	}
	for name := range metadata {
		inner := nested.Map(metadata, "properties")
		allowed := name == "type" || name == "default"
		_, hasName := inner["name"]
		_, hasGenerateName := inner["generateName"]
		if known := hasName && hasGenerateName && len(inner) == 2 || (hasName || hasGenerateName) && len(inner) == 1; name == "properties" && (known || len(inner) == 0) {
			allowed = true
		}
		if !allowed {
			return append(errs, field.Forbidden(at.Key("metadata"), "must not specify anything other than name and generateName, but metadata is implicitly specified"))
		}
	}
	return errs
}

// isIntOrString reports whether anyOf permits integers and strings, an exception for int-or-string fields.
func isIntOrString(anyOf []any) bool {
	return reflect.DeepEqual(anyOf, []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}})
}

func firstIsIntOrString(schema map[string]any) bool {
	all := nested.Slice(schema, "allOf")
	if len(all) == 0 {
		return false
	}
	first, _ := all[0].(map[string]any)
	return isIntOrString(nested.Slice(first, "anyOf"))
}

// valueErrors checks the value validations of a schema. Nested validations must not define structure.
func valueErrors(schema map[string]any, at *field.Path, skipAnyOf, skipFirstOfAll bool) field.ErrorList {
	var errs field.ErrorList
	for _, key := range []string{"anyOf", "allOf", "oneOf"} {
		if key == "anyOf" && skipAnyOf {
			continue
		}
		for i, inner := range nested.Slice(schema, key) {
			inner, _ := inner.(map[string]any)
			errs = append(errs, nestedErrors(inner, at.Child(key).Index(i), key == "allOf" && i == 0 && skipFirstOfAll)...)
		}
	}
	errs = append(errs, nestedErrors(nested.Map(schema, "not"), at.Child("not"), false)...)
	if pattern := nested.String(schema, "pattern"); pattern != "" {
		if _, err := regexp.Compile(pattern); err != nil {
			errs = append(errs, field.Invalid(at.Child("pattern"), pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err)))
		}
	}
	return errs
}

func nestedErrors(schema map[string]any, at *field.Path, skipAnyOf bool) field.ErrorList {
	if schema == nil {
		return nil
	}
	errs := valueErrors(schema, at, skipAnyOf, false)
	errs = append(errs, nestedErrors(nested.Map(schema, "items"), at.Child("items"), false)...)
	for name, property := range nested.Map(schema, "properties") {
		property, _ := property.(map[string]any)
		errs = append(errs, nestedErrors(property, at.Child("properties").Key(name), false)...)
		if name == "metadata" {
			errs = append(errs, field.Forbidden(at.Child("properties").Key("metadata"), "must not be specified in a nested context"))
		}
	}
	for _, forbidden := range []struct{ name, detail string }{
		{"type", "must be empty to be structural"}, {"title", "must be empty to be structural"}, {"description", "must be empty to be structural"},
		{"additionalProperties", "must be undefined to be structural"}, {"default", "must be undefined to be structural"},
		{"nullable", "must be false to be structural"}, {"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
		{"x-kubernetes-embedded-resource", "must be false to be structural"}, {"x-kubernetes-int-or-string", "must be false to be structural"},
		{"x-kubernetes-list-map-keys", "must be empty to be structural"}, {"x-kubernetes-list-type", "must be undefined to be structural"},
		{"x-kubernetes-map-type", "must be undefined to be structural"}, {"x-kubernetes-validations", "must be empty to be structural"},
	} {
		isAbsent := schema[forbidden.name] == nil || schema[forbidden.name] == false && forbidden.name != "default"
		if !isAbsent {
			errs = append(errs, field.Forbidden(at.Child(forbidden.name), forbidden.detail))
		}
	}
	return errs
}

// completenessErrors returns errors for fields of value validations that are missing in the structure.
func completenessErrors(structure, values map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range []string{"anyOf", "allOf", "oneOf", "not"} {
		all := nested.Slice(values, key)
		if not := nested.Map(values, key); not != nil {
			all = []any{not}
		}
		for i, one := range all {
			one, _ := one.(map[string]any)
			here := at.Child(key)
			if key != "not" {
				here = here.Index(i)
			}
			errs = append(errs, missingStructure(structure, one, at, here)...)
		}
	}
	return errs
}

func missingStructure(structure, values map[string]any, at, here *field.Path) field.ErrorList {
	var errs field.ErrorList
	if items := nested.Map(values, "items"); items != nil {
		if nested.Map(structure, "items") == nil {
			errs = append(errs, field.Required(at.Child("items"), fmt.Sprintf("because it is defined in %s", here.Child("items"))))
		} else {
			errs = append(errs, missingStructure(nested.Map(structure, "items"), items, at.Child("items"), here.Child("items"))...)
		}
	}
	for name, property := range nested.Map(values, "properties") {
		property, _ := property.(map[string]any)
		defined := nested.Map(structure, "properties", name)
		if defined == nil {
			errs = append(errs, field.Required(at.Child("properties").Key(name), fmt.Sprintf("because it is defined in %s", here.Child("properties").Key(name))))
			continue
		}
		errs = append(errs, missingStructure(defined, property, at.Child("properties").Key(name), here.Child("properties").Key(name))...)
	}
	for _, key := range []string{"anyOf", "allOf", "oneOf"} {
		for i, one := range nested.Slice(values, key) {
			one, _ := one.(map[string]any)
			errs = append(errs, missingStructure(structure, one, at, here.Child(key).Index(i))...)
		}
	}
	return errs
}

// defaultErrors validates defaults by their schema. around returns the object with a value inside of apiVersion, kind or metadata of a
// resource. It is nil elsewhere.
func defaultErrors(schema map[string]any, at *field.Path, isRoot bool, around func(any) map[string]any) field.ErrorList {
	if schema == nil {
		return nil
	}
	isResource := isRoot || nested.Bool(schema, "x-kubernetes-embedded-resource")
	var errs field.ErrorList
	if value := schema["default"]; value != nil {
		errs = append(errs, defaultValueErrors(value, schema, at.Child("default"), isResource, around)...)
	}
	item := around
	if around != nil {
		item = func(value any) map[string]any { return around([]any{value}) }
	}
	errs = append(errs, defaultErrors(nested.Map(schema, "items"), at.Child("items"), false, item)...)
	for name, property := range nested.Map(schema, "properties") {
		property, _ := property.(map[string]any)
		inside := around
		if isResource && isMetaField(name) {
			inside = func(value any) map[string]any { return map[string]any{name: value} }
		} else if around != nil {
			inside = func(value any) map[string]any { return around(map[string]any{name: value}) }
		}
		errs = append(errs, defaultErrors(property, at.Child("properties").Key(name), false, inside)...)
	}
	return errs
}

func defaultValueErrors(value any, schema map[string]any, at *field.Path, isResource bool, around func(any) map[string]any) field.ErrorList {
	var errs field.ErrorList
	if around != nil {
		resource := map[string]any{"apiVersion": "validation/v1", "kind": "Validation"}
		maps.Copy(resource, around(value))
		if invalid := validateResource(nil, resource); len(invalid) > 0 {
			return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must result in valid metadata: %v", invalid.ToAggregate()))}
		}
	} else {
		n := newNode(schema)
		n.embedded = isResource
		pruned := runtime.DeepCopyJSONValue(value)
		(&pruner{}).prune(pruned, n, "")
		if !reflect.DeepEqual(pruned, value) {
			errs = append(errs, field.Invalid(at, value, "must not have unknown fields"))
		}
		if embedded := validateEmbedded(at, value, n); len(embedded) > 0 {
			return append(errs, embedded...)
		}
	}
	result := validate.NewSchemaValidator(toOpenAPI(schema), nil, "", strfmt.Default).Validate(value)
	for _, err := range toFieldErrors(at, result) {
		err.Detail = strings.TrimSpace(err.Detail) // trimmed, unlike in errors of objects
		errs = append(errs, err)
	}
	return errs
}

// standardContext is the position of a schema in a definition.
type standardContext struct {
	noDefaults string // the reason why defaults are forbidden, or ""
	root       bool
	insideMeta bool // within apiVersion, kind or metadata of a resource
}

// standardErrors checks for keywords not supported in any schema.
func standardErrors(schema map[string]any, at *field.Path, in standardContext) field.ErrorList {
	var errs field.ErrorList
	types := []string{"array", "boolean", "integer", "number", "object", "string"}
	if typ := nested.String(schema, "type"); typ != "" && !slices.Contains(types, typ) {
		errs = append(errs, field.NotSupported(at.Child("type"), typ, types))
	}
	if schema["default"] != nil && in.noDefaults != "" {
		errs = append(errs, field.Forbidden(at.Child("default"), "must not be set "+in.noDefaults))
	}
	for _, name := range []string{"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"} {
		if schema[name] != nil {
			errs = append(errs, field.Forbidden(at.Child(name), name+" is not supported"))
		}
	}
	if nested.String(schema, "type") == "null" {
		errs = append(errs, field.Forbidden(at.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	if len(nested.Slice(schema, "items")) > 0 {
		errs = append(errs, field.Forbidden(at.Child("items"), "items must be a schema object and not an array"))
	}
	if in.insideMeta && nested.Bool(schema, "x-kubernetes-embedded-resource") {
		errs = append(errs, field.Forbidden(at.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
	if nested.Bool(schema, "uniqueItems") {
		errs = append(errs, field.Forbidden(at.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	if additional := schema["additionalProperties"]; additional != nil && additional != true && len(nested.Map(schema, "properties")) > 0 {
		errs = append(errs, field.Forbidden(at.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
	}
	errs = append(errs, extensionErrors(schema, at)...)
	errs = append(errs, ruleErrors(schema, at)...)
	subschemas(schema, at, func(keyword, key string, one map[string]any, at *field.Path) {
		inside := in
		inside.root = false
		switch {
		case keyword == "patternProperties" || keyword == "additionalItems":
			return // the API server does not look into them
		case keyword == "additionalProperties" && in.insideMeta:
			inside.noDefaults = "inside additionalProperties applying to object metadata"
		case keyword == "properties" && isMetaField(key) && (in.root || nested.Bool(schema, "x-kubernetes-embedded-resource")):
			inside.insideMeta = true
			if in.root {
				inside.noDefaults = "in top-level " + key
			}
		}
		errs = append(errs, standardErrors(one, at, inside)...)
	})
	return errs
}
