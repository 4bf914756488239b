package structural

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// toOpenAPI converts a schema for kube-openapi's validator. Formats not checked by the API server are omitted.
func toOpenAPI(schema map[string]any) *spec.Schema {
	out := &spec.Schema{}
	if t := nested.String(schema, "type"); t != "" {
		out.Type = spec.StringOrArray{t}
	}
	if nested.Bool(schema, "x-kubernetes-int-or-string") {
		out.Type = spec.StringOrArray{"integer", "string"}
	}
	out.Nullable = nested.Bool(schema, "nullable")
	out.Format = checkedFormat(nested.String(schema, "type"), nested.String(schema, "format"))
	out.Pattern = nested.String(schema, "pattern")
	out.UniqueItems = nested.Bool(schema, "uniqueItems")
	out.Maximum = float(schema["maximum"])
	out.ExclusiveMaximum = nested.Bool(schema, "exclusiveMaximum")
	out.Minimum = float(schema["minimum"])
	out.ExclusiveMinimum = nested.Bool(schema, "exclusiveMinimum")
	out.MultipleOf = float(schema["multipleOf"])
	out.MaxLength = integer(schema["maxLength"])
	out.MinLength = integer(schema["minLength"])
	out.MaxItems = integer(schema["maxItems"])
	out.MinItems = integer(schema["minItems"])
	out.MaxProperties = integer(schema["maxProperties"])
	out.MinProperties = integer(schema["minProperties"])
	for _, name := range nested.Slice(schema, "required") {
		if name, ok := name.(string); ok {
			out.Required = append(out.Required, name)
		}
	}
	out.Enum = nested.Slice(schema, "enum")
	addSubschemas(out, schema)
	return out
}

func addSubschemas(out *spec.Schema, schema map[string]any) {
	for key, list := range map[string]*[]spec.Schema{"allOf": &out.AllOf, "anyOf": &out.AnyOf, "oneOf": &out.OneOf} {
		for _, one := range nested.Slice(schema, key) {
			one, _ := one.(map[string]any)
			sub := toOpenAPI(one)
			*list = append(*list, *sub)
		}
	}
	if not := nested.Map(schema, "not"); not != nil {
		out.Not = toOpenAPI(not)
	}
	if items := nested.Map(schema, "items"); items != nil {
		sub := toOpenAPI(items)
		out.Items = &spec.SchemaOrArray{Schema: sub}
	}
	switch additional := schema["additionalProperties"].(type) {
	case bool:
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: additional}
	case map[string]any:
		sub := toOpenAPI(additional)
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: sub}
	}
	if properties := nested.Map(schema, "properties"); len(properties) > 0 {
		out.Properties = make(map[string]spec.Schema, len(properties))
		for name, property := range properties {
			property, _ := property.(map[string]any)
			sub := toOpenAPI(property)
			out.Properties[name] = *sub
		}
	}
}

// stringFormats are the string formats checked by the API server, without hyphens.
const stringFormats = " bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard " +
	"ssn hexcolor rgbcolor byte password date duration datetime k8sshortname k8slongname "

// checkedFormat returns format if the API server checks it for the type, otherwise "".
func checkedFormat(typ, format string) string {
	checked := false
	switch typ {
	case "", "string":
		checked = format != "" && strings.Contains(stringFormats, " "+strings.ReplaceAll(format, "-", "")+" ")
	case "integer":
		checked = format == "int32" || format == "int64"
	case "number":
		checked = format == "float" || format == "double"
	}
	if !checked {
		return ""
	}
	return format
}

func float(value any) *float64 {
	switch v := value.(type) {
	case int64:
		f := float64(v)
		return &f
	case float64:
		return &v
	}
	return nil
}

func integer(value any) *int64 {
	switch v := value.(type) {
	case int64:
		return &v
	case float64:
		i := int64(v)
		return &i
	}
	return nil
}
