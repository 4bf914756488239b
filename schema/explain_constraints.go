package schema

// maxNested bounds the described levels of lists and maps.
const maxNested = 8

// constraints returns the keywords of a resolved schema, of a list's items and of a map's values, by their names in OpenAPI. Type,
// description, default, enum and fields are left out.
func constraints(s *Schema, depth int) map[string]any {
	all := keywords(s)
	if depth == maxNested {
		return all
	}
	for _, part := range []struct {
		name   string
		schema *Schema
	}{{"items", s.Items()}, {"additionalProperties", s.additionalProperties.resolve()}} {
		if part.schema == nil {
			continue
		}
		nested := constraints(part.schema, depth+1)
		addSet(nested, "enum", part.schema.Enum)
		if part.schema.Default != nil && !isZero(part.schema.Default) {
			nested["default"] = part.schema.Default
		}
		for name, value := range nested {
			all[part.name+"."+name] = value
		}
	}
	return all
}

// keywords returns the keywords of a schema without its type, description, default, enum, fields, items and values.
func keywords(s *Schema) map[string]any {
	all := map[string]any{}
	for name, text := range map[string]string{
		"format": s.Format, "pattern": s.Pattern, "x-kubernetes-list-type": s.ListType, "x-kubernetes-map-type": s.MapType,
		"x-kubernetes-patch-strategy": s.PatchStrategy, "x-kubernetes-patch-merge-key": s.PatchMergeKey,
	} {
		if text != "" {
			all[name] = text
		}
	}
	for name, isSet := range map[string]bool{
		"nullable": s.Nullable, "exclusiveMinimum": s.ExclusiveMinimum, "exclusiveMaximum": s.ExclusiveMaximum,
		"uniqueItems": s.UniqueItems, "x-kubernetes-int-or-string": s.IntOrString, "x-kubernetes-embedded-resource": s.EmbeddedResource,
		"x-kubernetes-preserve-unknown-fields": s.PreserveUnknownFields,
	} {
		if isSet {
			all[name] = true
		}
	}
	for name, number := range map[string]*int64{
		"minLength": s.MinLength, "maxLength": s.MaxLength, "minItems": s.MinItems, "maxItems": s.MaxItems,
		"minProperties": s.MinProperties, "maxProperties": s.MaxProperties,
	} {
		if number != nil {
			all[name] = *number
		}
	}
	for name, number := range map[string]*float64{"minimum": s.Minimum, "maximum": s.Maximum, "multipleOf": s.MultipleOf} {
		if number != nil {
			all[name] = *number
		}
	}
	addSet(all, "x-kubernetes-list-map-keys", s.ListMapKeys)
	addSet(all, "x-kubernetes-validations", s.Rules)
	addAlternatives(all, s)
	return all
}

// addAlternatives adds allOf, anyOf, oneOf and not. The types of an IntOrString and the references of an allOf
// are left out.
func addAlternatives(all map[string]any, s *Schema) {
	for name, schemas := range map[string][]*Schema{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		if s.IntOrString && name == "anyOf" {
			continue
		}
		var parts []any
		for _, part := range schemas {
			if name != "allOf" || part.reference == nil {
				parts = append(parts, encode(part))
			}
		}
		addSet(all, name, parts)
	}
	if s.Not != nil {
		all["not"] = encode(s.Not)
	}
}

// encode returns a schema as in OpenAPI, without descriptions. References stay references.
func encode(s *Schema) map[string]any {
	if s.reference != nil {
		return map[string]any{"$ref": referencePrefix + s.reference.name}
	}
	all := keywords(s)
	if s.Type != "" {
		all["type"] = s.Type
	}
	if s.Default != nil {
		all["default"] = s.Default
	}
	addSet(all, "enum", s.Enum)
	addSet(all, "required", s.Required)
	if len(s.properties) > 0 {
		fields := map[string]any{}
		for name, field := range s.properties {
			fields[name] = encode(field)
		}
		all["properties"] = fields
	}
	if s.items != nil {
		all["items"] = encode(s.items)
	}
	if s.additionalProperties != nil {
		all["additionalProperties"] = encode(s.additionalProperties)
	}
	return all
}

// addSet adds a list unless it is empty.
func addSet[T any](all map[string]any, name string, list []T) {
	if len(list) > 0 {
		all[name] = list
	}
}
