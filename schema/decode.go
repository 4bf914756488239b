package schema

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
)

// maxDepth bounds schemas nested in each other without a reference.
const maxDepth = 200

// decodeSchema decodes a schema of a document. Unknown fields are ignored, as are known fields of an unexpected type.
func decodeSchema(d *Document, raw []byte) (*Schema, error) {
	r := jsonread.Borrow(raw)
	defer r.Release()
	decoder := &schemaDecoder{document: d, r: r}
	s, err := decoder.schema()
	if err != nil {
		return nil, err
	}
	return s, r.End()
}

type schemaDecoder struct {
	document *Document
	r        *jsonread.Reader
	depth    int
}

// schema decodes the schema at the reader.
func (d *schemaDecoder) schema() (*Schema, error) {
	if d.depth++; d.depth > maxDepth {
		return nil, fmt.Errorf("more than %d schemas in each other", maxDepth)
	}
	defer func() { d.depth-- }()
	s := &Schema{}
	err := eachMember(d.r, "a schema", func(name string) error { return d.member(s, name) })
	if err != nil {
		return nil, err
	}
	// Field schemas with a description or a default have their reference in allOf.
	if len(s.AllOf) == 1 && s.AllOf[0].reference != nil && s.properties == nil && s.reference == nil {
		s.reference = &reference{document: d.document, name: s.AllOf[0].reference.name}
		s.AllOf = nil
	}
	s.prepare()
	return s, nil
}

// prepare sets the fields for validation.
func (s *Schema) prepare() {
	if s.Pattern != "" {
		s.pattern = &pattern{}
	}
	for name, field := range s.properties {
		if field.Default != nil {
			s.defaulted = append(s.defaulted, name)
		}
	}
	s.deprecation = deprecationOf(s.Description)
}

// member decodes a member of a schema.
func (d *schemaDecoder) member(s *Schema, name string) (err error) {
	switch name {
	case "properties":
		s.properties, err = d.schemas()
	case "items":
		s.items, err = d.optional()
	case "additionalProperties":
		s.additionalProperties, s.anyAdditional, err = d.additional()
	case "allOf":
		s.AllOf, err = d.list()
	case "anyOf":
		s.AnyOf, err = d.list()
	case "oneOf":
		s.OneOf, err = d.list()
	case "not":
		s.Not, err = d.optional()
	default:
		var value any
		if value, err = d.r.Value(); err == nil {
			d.value(s, name, value)
		}
	}
	return err
}

// schemas decodes schemas by name.
func (d *schemaDecoder) schemas() (map[string]*Schema, error) {
	schemas := map[string]*Schema{}
	err := eachMember(d.r, "properties", func(name string) error {
		s, err := d.optional()
		if s != nil {
			schemas[name] = s
		}
		return err
	})
	return schemas, err
}

// optional decodes a schema. For any value but an object it returns nil.
func (d *schemaDecoder) optional() (*Schema, error) {
	if c, err := d.r.Peek(); err != nil {
		return nil, err
	} else if c != '{' {
		_, _, err = d.r.Skip()
		return nil, err
	}
	return d.schema()
}

// additional decodes additionalProperties: a schema or a boolean.
func (d *schemaDecoder) additional() (s *Schema, allowed bool, err error) {
	if c, err := d.r.Peek(); err != nil {
		return nil, false, err
	} else if c != '{' {
		value, err := d.r.Value()
		return nil, value == true, err
	}
	s, err = d.schema()
	return s, true, err
}

// list decodes a list of schemas.
func (d *schemaDecoder) list() ([]*Schema, error) {
	if c, err := d.r.Peek(); err != nil {
		return nil, err
	} else if c != '[' {
		_, _, err = d.r.Skip()
		return nil, err
	}
	var schemas []*Schema
	err := d.r.EachElement(func() error {
		s, err := d.schema()
		schemas = append(schemas, s)
		return err
	})
	return schemas, err
}

// value sets a field of s that is no schema.
func (d *schemaDecoder) value(s *Schema, name string, value any) {
	switch name {
	case "$ref":
		if text, found := strings.CutPrefix(text(value), referencePrefix); found {
			s.reference = &reference{document: d.document, name: text, isDirect: true}
		}
	case "type":
		s.Type = text(value)
	case "format":
		s.Format = text(value)
	case "description":
		s.Description = text(value)
	case "default":
		s.Default = value
	case "enum":
		s.Enum, _ = value.([]any)
	case "nullable":
		s.Nullable = value == true
	case "required":
		s.Required = texts(value)
	case "pattern":
		s.Pattern = text(value)
	default:
		if !s.setBound(name, value) {
			s.setExtension(name, value)
		}
	}
}

// setBound sets a numeric keyword.
func (s *Schema) setBound(name string, value any) bool {
	switch name {
	case "minimum":
		s.Minimum = number(value)
	case "maximum":
		s.Maximum = number(value)
	case "exclusiveMinimum":
		s.ExclusiveMinimum = value == true
	case "exclusiveMaximum":
		s.ExclusiveMaximum = value == true
	case "multipleOf":
		s.MultipleOf = number(value)
	case "minLength":
		s.MinLength = integer(value)
	case "maxLength":
		s.MaxLength = integer(value)
	case "minItems":
		s.MinItems = integer(value)
	case "maxItems":
		s.MaxItems = integer(value)
	case "minProperties":
		s.MinProperties = integer(value)
	case "maxProperties":
		s.MaxProperties = integer(value)
	case "uniqueItems":
		s.UniqueItems = value == true
	default:
		return false
	}
	return true
}

// setExtension sets a field of Kubernetes' extensions.
func (s *Schema) setExtension(name string, value any) {
	switch name {
	case "x-kubernetes-int-or-string":
		s.IntOrString = value == true
	case "x-kubernetes-preserve-unknown-fields":
		s.PreserveUnknownFields = value == true
	case "x-kubernetes-embedded-resource":
		s.EmbeddedResource = value == true
	case "x-kubernetes-list-type":
		s.ListType = text(value)
	case "x-kubernetes-list-map-keys":
		s.ListMapKeys = texts(value)
	case "x-kubernetes-map-type":
		s.MapType = text(value)
	case "x-kubernetes-patch-strategy":
		s.PatchStrategy = text(value)
	case "x-kubernetes-patch-merge-key":
		s.PatchMergeKey = text(value)
	case "x-kubernetes-group-version-kind":
		s.GroupVersionKinds = groupVersionKinds(value)
	case "x-kubernetes-validations":
		s.Rules = rules(value)
	}
}

func rules(value any) []Rule {
	list, _ := value.([]any)
	var all []Rule
	for _, element := range list {
		rule, ok := element.(map[string]any)
		if !ok {
			continue
		}
		all = append(all, Rule{
			Rule:              text(rule["rule"]),
			Message:           text(rule["message"]),
			MessageExpression: text(rule["messageExpression"]),
			Reason:            text(rule["reason"]),
			FieldPath:         text(rule["fieldPath"]),
			OptionalOldSelf:   rule["optionalOldSelf"] == true,
		})
	}
	return all
}

func groupVersionKinds(value any) []schema.GroupVersionKind {
	list, _ := value.([]any)
	var kinds []schema.GroupVersionKind
	for _, element := range list {
		if gvk, ok := element.(map[string]any); ok {
			kinds = append(kinds, schema.GroupVersionKind{
				Group: text(gvk["group"]), Version: text(gvk["version"]), Kind: text(gvk["kind"]),
			})
		}
	}
	return kinds
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func texts(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, element := range list {
		if s, ok := element.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

func number(value any) *float64 {
	switch n := value.(type) {
	case int64:
		f := float64(n)
		return &f
	case float64:
		return &n
	}
	return nil
}

func integer(value any) *int64 {
	switch n := value.(type) {
	case int64:
		return &n
	case float64:
		i := int64(n)
		return &i
	}
	return nil
}

// eachMember reads the object at the reader. member reads the value of each member.
func eachMember(r *jsonread.Reader, what string, member func(name string) error) error {
	c, err := r.Peek()
	if err != nil {
		return err
	}
	if c != '{' {
		return errors.New(what + " is not a JSON object")
	}
	return r.EachMember(member)
}
