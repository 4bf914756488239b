package structural

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// extensionErrors checks the x-kubernetes- extensions of one level of a schema.
func extensionErrors(schema map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	typ := nested.String(schema, "type")
	if preserve, ok := schema["x-kubernetes-preserve-unknown-fields"].(bool); ok && !preserve {
		errs = append(errs, field.Invalid(at.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	for _, one := range []struct {
		name, typ string
		values    []string
	}{
		{"x-kubernetes-map-type", "object", []string{"atomic", "granular"}},
		{"x-kubernetes-list-type", "array", []string{"atomic", "set", "map"}},
	} {
		value, ok := schema[one.name].(string)
		if !ok {
			continue
		}
		if typ == "" {
			errs = append(errs, field.Required(at.Child("type"), "must be "+one.typ+" if "+one.name+" is specified"))
		} else if typ != one.typ {
			errs = append(errs, field.Invalid(at.Child("type"), typ, "must be "+one.typ+" if "+one.name+" is specified"))
		}
		if !slices.Contains(one.values, value) {
			errs = append(errs, field.NotSupported(at.Child(one.name), value, one.values))
		}
	}
	return append(errs, listErrors(schema, at)...)
}

// listErrors checks the requirements of lists of type set and map.
func listErrors(schema map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	listType := nested.String(schema, "x-kubernetes-list-type")
	keys := nested.Slice(schema, "x-kubernetes-list-map-keys")
	items := nested.Map(schema, "items")
	if listType == "set" && nested.String(schema, "type") == "array" {
		switch nested.String(items, "type") {
		case "array":
			if inner := nested.String(items, "x-kubernetes-list-type"); inner != "" && inner != "atomic" {
				errs = append(errs, field.Invalid(at.Child("items", "x-kubernetes-list-type"), inner, "must be atomic as item of a list with x-kubernetes-list-type=set"))
			}
		case "object":
			if nested.String(items, "x-kubernetes-map-type") != "atomic" {
				errs = append(errs, field.Invalid(at.Child("items", "x-kubernetes-map-type"), nil, "must be atomic as item of a list with x-kubernetes-list-type=set"))
			}
		}
	}
	if len(keys) > 0 && listType != "map" {
		if schema["x-kubernetes-list-type"] == nil {
			errs = append(errs, field.Required(at.Child("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"))
		} else {
			errs = append(errs, field.Invalid(at.Child("x-kubernetes-list-type"), listType, "must be map if x-kubernetes-list-map-keys is non-empty"))
		}
	}
	if listType == "map" {
		errs = append(errs, mapListErrors(keys, schema["items"], at)...)
	}
	if (listType == "map" || listType == "set") && nested.Bool(items, "nullable") {
		errs = append(errs, field.Forbidden(at.Child("items", "nullable"), "cannot be nullable when x-kubernetes-list-type is "+listType))
	}
	return errs
}

func mapListErrors(keys []any, schemaOrArray any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	inKeys := at.Child("x-kubernetes-list-map-keys")
	if len(keys) == 0 {
		errs = append(errs, field.Required(inKeys, "must not be empty if x-kubernetes-list-type is map"))
	}
	items, isSchema := schemaOrArray.(map[string]any)
	if schemaOrArray == nil {
		return append(errs, field.Required(at.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
	}
	if !isSchema {
		return append(errs, field.Invalid(at.Child("items"), schemaOrArray, "must only have a single schema if x-kubernetes-list-type is map"))
	}
	isObject := nested.String(items, "type") == "object"
	if !isObject {
		errs = append(errs, field.Invalid(at.Child("items", "type"), items["type"], "must be object if parent array's x-kubernetes-list-type is map"))
	}
	seen := map[any]bool{}
	for _, key := range keys {
		name, _ := key.(string)
		property, ok := nested.Map(items, "properties")[name].(map[string]any)
		inProperty := at.Child("items", "properties").Key(name)
		switch typ := nested.String(property, "type"); {
		case !isObject:
		case !ok:
			errs = append(errs, field.Invalid(inKeys, keys, "entries must all be names of item properties"))
		case typ == "array" || typ == "object":
			errs = append(errs, field.Invalid(inProperty.Child("type"), nested.String(items, "type"), "must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if seen[key] && isObject {
			errs = append(errs, field.Invalid(inKeys, keys, "must not contain duplicate entries"))
		}
		seen[key] = true
		if !ok {
			continue
		}
		if !slices.Contains(nested.Slice(items, "required"), key) && property["default"] == nil {
			errs = append(errs, field.Required(inProperty.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if nested.Bool(property, "nullable") {
			errs = append(errs, field.Forbidden(inProperty.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return errs
}

// ruleErrors checks the form of CEL rules, not their expressions.
func ruleErrors(schema map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range nested.Slice(schema, "x-kubernetes-validations") {
		rule, _ := rule.(map[string]any)
		at := at.Child("x-kubernetes-validations").Index(i)
		expression := strings.TrimSpace(nested.String(rule, "rule"))
		message := strings.TrimSpace(nested.String(rule, "message"))
		switch {
		case expression == "":
			errs = append(errs, field.Required(at.Child("rule"), "rule is not specified"))
		case nested.String(rule, "message") != "" && message == "":
			errs = append(errs, field.Invalid(at.Child("message"), nested.String(rule, "message"), "must be non-empty if specified"))
		case strings.ContainsAny(message, "\n\r"):
			errs = append(errs, field.Invalid(at.Child("message"), nested.String(rule, "message"), "must not contain line breaks"))
		case strings.ContainsAny(expression, "\n\r") && message == "":
			errs = append(errs, field.Required(at.Child("message"), "message must be specified if rule contains line breaks"))
		}
		if nested.String(rule, "messageExpression") != "" && strings.TrimSpace(nested.String(rule, "messageExpression")) == "" {
			errs = append(errs, field.Required(at.Child("messageExpression"), "messageExpression must be non-empty if specified"))
		}
		if path := nested.String(rule, "fieldPath"); path != "" && unsupportedKeyword(schema) == "" && newNode(schema).atPath(path) == nil {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), path, "must be a valid path"))
		}
		reasons := []string{"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"}
		if reason, ok := rule["reason"].(string); ok && !slices.Contains(reasons, reason) {
			errs = append(errs, field.NotSupported(at.Child("reason"), reason, reasons))
		}
	}
	return errs
}
