package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// parseKind returns the schema of kind K in a document of components.
func parseKind(t *testing.T, k string, more ...string) *Schema {
	t.Helper()
	k = strings.TrimSuffix(k, "}") + `,"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"K"}]}`
	document, err := ParseDocument(fmt.Appendf(nil, `{"components":{"schemas":{%s}}}`, strings.Join(append(more, `"K":`+k), ",")))
	require.NoError(t, err)
	s, err := document.Kind(schema.GroupVersionKind{Version: "v1", Kind: "K"})
	require.NoError(t, err)
	require.NotNil(t, s)
	return s
}

func TestDocument_Kind_Keywords(t *testing.T) {
	s := parseKind(t, `{"type":"object","required":["a"],"minProperties":1,"properties":{
		"a":{"type":"integer","format":"int32","minimum":1,"maximum":2.5,"exclusiveMinimum":true,"multipleOf":2,"default":0,"enum":[1,"x",null]},
		"b":{"type":"array","maxItems":3,"uniqueItems":true,"items":{"type":"string","pattern":"^a$","minLength":1,"nullable":true},
			"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},
		"c":{"type":"object","additionalProperties":{"type":"boolean"}},
		"d":{"type":"object","additionalProperties":true},
		"e":{"anyOf":[{"type":"integer"},{"type":"string"}],"not":{"type":"array"},"x-kubernetes-int-or-string":true},
		"f":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":true,
			"x-kubernetes-validations":[{"rule":"self.x","message":"m","optionalOldSelf":true}]}}}`)
	a := s.Field("a")
	assert.Equal(t, []any{"integer", "int32", 1.0, 2.5, true, 2.0, int64(0), []any{int64(1), "x", nil}},
		[]any{a.Type, a.Format, *a.Minimum, *a.Maximum, a.ExclusiveMinimum, *a.MultipleOf, a.Default, a.Enum})
	b := s.Field("b")
	assert.Equal(t, []any{int64(3), true, "map", []string{"k"}, "^a$", int64(1), true},
		[]any{*b.MaxItems, b.UniqueItems, b.ListType, b.ListMapKeys, b.Items().Pattern, *b.Items().MinLength, b.Items().Nullable})
	values, isMap := s.Field("c").Values()
	assert.True(t, isMap)
	assert.Equal(t, "boolean", values.Type)
	values, isMap = s.Field("d").Values()
	assert.True(t, isMap)
	assert.Nil(t, values)
	_, isMap = a.Values()
	assert.False(t, isMap)
	assert.True(t, s.Field("e").IntOrString)
	assert.Len(t, s.Field("e").AnyOf, 2)
	assert.Equal(t, "array", s.Field("e").Not.Type)
	assert.Equal(t, []Rule{{Rule: "self.x", Message: "m", OptionalOldSelf: true}}, s.Field("f").Rules)
	assert.Nil(t, s.Field("missing"))
	assert.Equal(t, "K", s.Name)
}

func TestDocument_Kind_References(t *testing.T) {
	other := `"Other":{"type":"object","description":"of Other","properties":{"self":{"$ref":"#/components/schemas/Other"}}}`
	s := parseKind(t, `{"properties":{
		"plain":{"$ref":"#/components/schemas/Other"},
		"described":{"description":"of the field","default":{},"allOf":[{"$ref":"#/components/schemas/Other"}]},
		"missing":{"description":"kept","$ref":"#/components/schemas/None"},
		"circle":{"$ref":"#/components/schemas/Circle"}}}`, other, `"Circle":{"$ref":"#/components/schemas/Circle"}`)
	assert.Equal(t, "of Other", s.Field("plain").Description)
	assert.Equal(t, "of the field", s.Field("described").Description)
	assert.Equal(t, map[string]any{}, s.Field("described").Default)
	assert.Equal(t, "Other", s.Field("described").Name)
	assert.Same(t, s.Field("plain"), s.Field("plain").Field("self").Field("self"), "recursion is endless and costs nothing")
	assert.ErrorContains(t, s.Field("missing").Unresolved, `no schema "None"`)
	assert.Equal(t, "kept", s.Field("missing").Description)
	assert.ErrorContains(t, s.Field("circle").Unresolved, "references in a row")
}

func TestParseDocument_Invalid(t *testing.T) {
	for document, want := range map[string]string{
		`[]`:                              "the document is not a JSON object",
		`{"components":{"schemas":[]}}`:   "schemas is not a JSON object",
		`{"components":{"schemas":{"K":1`: "components.schemas.K: a schema is not a JSON object",
		`{} {}`:                           "'{' behind the object",
		``:                                "JSON input ends early",
	} {
		_, err := ParseDocument([]byte(document))
		assert.ErrorContains(t, err, want, document)
		assert.ErrorContains(t, err, "parse OpenAPI document", document)
	}
}

func TestDocument_Kind_NestedTooDeeply(t *testing.T) {
	deep := strings.Repeat(`{"items":`, maxDepth+1) + `{}` + strings.Repeat(`}`, maxDepth+1)
	document, err := ParseDocument(fmt.Appendf(nil, `{"components":{"schemas":{"K":{"items":%s,
		"x-kubernetes-group-version-kind":[{"version":"v1","kind":"K"}]}}}}`, deep))
	require.NoError(t, err)
	_, err = document.Kind(schema.GroupVersionKind{Version: "v1", Kind: "K"})
	assert.ErrorContains(t, err, `schema "K": more than 200 schemas in each other`)
}

func FuzzParseDocument(f *testing.F) {
	f.Add([]byte(widgetDocument("color")))
	f.Add(objectMetaDocument)
	f.Fuzz(func(_ *testing.T, data []byte) {
		document, err := ParseDocument(data)
		if err != nil {
			return
		}
		for gvk := range document.Kinds() {
			if s, err := document.Kind(gvk); err == nil {
				visit(s, 4)
			}
		}
	})
}

// visit reads a schema to a depth.
func visit(s *Schema, depth int) {
	if s == nil || depth == 0 {
		return
	}
	for _, field := range s.Fields() {
		visit(field, depth-1)
	}
	visit(s.Items(), depth-1)
	values, _ := s.Values()
	visit(values, depth-1)
}
