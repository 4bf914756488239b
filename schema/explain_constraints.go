package schema

// maxNested bounds the described levels of lists and maps.
const maxNested = 8

// keywords are constraints by their names in OpenAPI. Most schemas have none: the map is made for the first.
type keywords map[string]any

func (k *keywords) set(name string, value any) {
	if *k == nil {
		*k = keywords{}
	}
	(*k)[name] = value
}

func (k *keywords) setText(name, text string) {
	if text != "" {
		k.set(name, text)
	}
}

func (k *keywords) setFlag(name string, isSet bool) {
	if isSet {
		k.set(name, true)
	}
}

func setNumber[T any](k *keywords, name string, number *T) {
	if number != nil {
		k.set(name, *number)
	}
}

func setList[T any](k *keywords, name string, list []T) {
	if len(list) > 0 {
		k.set(name, list)
	}
}

// constraints returns the keywords of a resolved schema, of a list's items and of a map's values. Type, description, default, enum
// and fields are left out.
func (e *explainer) constraints(s *Schema, depth int) keywords {
	all := e.keywords(s)
	if depth == maxNested {
		return all
	}
	for _, part := range []struct {
		name   string
		schema *Schema
	}{{"items.", s.Items()}, {"additionalProperties.", s.additionalProperties.resolve()}} {
		if part.schema == nil {
			continue
		}
		for name, value := range e.constraints(part.schema, depth+1) {
			all.set(part.name+name, value)
		}
		setList(&all, part.name+"enum", part.schema.Enum)
		if value := part.schema.Default; value != nil && !isZero(value) {
			all.set(part.name+"default", value)
		}
	}
	return all
}

// keywords returns the keywords of a schema alone.
func (e *explainer) keywords(s *Schema) keywords {
	var all keywords
	all.setText("format", s.Format)
	all.setText("pattern", s.Pattern)
	all.setFlag("nullable", s.Nullable)
	setNumber(&all, "minLength", s.MinLength)
	setNumber(&all, "maxLength", s.MaxLength)
	setNumber(&all, "minimum", s.Minimum)
	setNumber(&all, "maximum", s.Maximum)
	all.setFlag("exclusiveMinimum", s.ExclusiveMinimum)
	all.setFlag("exclusiveMaximum", s.ExclusiveMaximum)
	setNumber(&all, "multipleOf", s.MultipleOf)
	setNumber(&all, "minItems", s.MinItems)
	setNumber(&all, "maxItems", s.MaxItems)
	setNumber(&all, "minProperties", s.MinProperties)
	setNumber(&all, "maxProperties", s.MaxProperties)
	all.setFlag("uniqueItems", s.UniqueItems)
	all.setFlag("x-kubernetes-int-or-string", s.IntOrString)
	all.setFlag("x-kubernetes-preserve-unknown-fields", s.PreserveUnknownFields)
	all.setFlag("x-kubernetes-embedded-resource", s.EmbeddedResource)
	all.setText("x-kubernetes-list-type", s.ListType)
	setList(&all, "x-kubernetes-list-map-keys", s.ListMapKeys)
	all.setText("x-kubernetes-map-type", s.MapType)
	all.setText("x-kubernetes-patch-strategy", s.PatchStrategy)
	all.setText("x-kubernetes-patch-merge-key", s.PatchMergeKey)
	setList(&all, "x-kubernetes-validations", s.Rules)
	if !s.IntOrString { // otherwise it has the two types
		setList(&all, "anyOf", e.alternatives(s.AnyOf, true))
	}
	setList(&all, "oneOf", e.alternatives(s.OneOf, true))
	setList(&all, "allOf", e.alternatives(s.AllOf, false)) // the fields of references are described
	if s.Not != nil {
		all.set("not", e.encode(s.Not))
	}
	return all
}

func (e *explainer) alternatives(schemas []*Schema, withReferences bool) []any {
	var all []any
	for _, s := range schemas {
		if withReferences || s.reference == nil {
			all = append(all, e.encode(s))
		}
	}
	return all
}

// encode returns a schema as in OpenAPI, without descriptions. References stay references.
func (e *explainer) encode(s *Schema) any {
	if !e.add(s) {
		return nil
	}
	if s.reference != nil {
		return keywords{"$ref": referencePrefix + s.reference.name}
	}
	all := e.keywords(s)
	if all == nil {
		all = keywords{}
	}
	all.setText("type", s.Type)
	if s.Default != nil {
		all.set("default", s.Default)
	}
	setList(&all, "enum", s.Enum)
	setList(&all, "required", s.Required)
	if len(s.properties) > 0 {
		fields := map[string]any{}
		for name, field := range s.properties {
			fields[name] = e.encode(field)
		}
		all.set("properties", fields)
	}
	if s.items != nil {
		all.set("items", e.encode(s.items))
	}
	if s.additionalProperties != nil {
		all.set("additionalProperties", e.encode(s.additionalProperties))
	}
	return all
}
