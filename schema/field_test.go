package schema

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSchema_ParseValue(t *testing.T) {
	for _, c := range []struct {
		schema, text string
		want         any
		err          string
	}{
		{`{"type":"string"}`, "3", "3", ""},
		{`{"type":"string"}`, "true", "true", ""},
		{`{"type":"string"}`, `"3"`, "3", ""},
		{`{"type":"string"}`, "", "", ""},
		{`{"type":"string","nullable":true}`, "null", nil, ""},
		{`{"type":"string"}`, "null", "null", ""},
		{`{"type":"integer"}`, "3", int64(3), ""},
		{`{"type":"integer"}`, "3.5", nil, `"3.5": the value is an integer`},
		{`{"type":"integer"}`, "three", nil, `"three": the value is an integer`},
		{`{"type":"number"}`, "3", int64(3), ""},
		{`{"type":"number"}`, "3.5", 3.5, ""},
		{`{"type":"boolean"}`, "true", true, ""},
		{`{"type":"boolean"}`, "yes", nil, `"yes": the value is a boolean`},
		{`{"type":"array","items":{"type":"string"}}`, `["a"]`, []any{"a"}, ""},
		{`{"type":"array","items":{"type":"string"}}`, `a`, nil, `"a": the value is a list`},
		{`{"type":"object","properties":{"a":{}}}`, `{"a":1}`, map[string]any{"a": int64(1)}, ""},
		{`{"type":"object","enum":[{"a":1}]}`, `{"a":1}`, map[string]any{"a": int64(1)}, ""},
		{`{"type":"object","enum":[{"a":1}]}`, `{"a":2}`, nil, "the value is one of"},
		{`{"type":"object","properties":{"a":{}}}`, `{"a":1},"b":{}`, nil, "the value is an object"},
		{`{"type":"integer"}`, `1,"kind":"x"`, nil, "the value is an integer"},
		{`{"type":"integer"}`, `1,"value":2`, nil, "the value is an integer"},
		{`{"type":"integer"}`, "1,2", nil, "the value is an integer"},
		{`{"type":"integer"}`, "1],[2", nil, "the value is an integer"},
		{`{}`, `"a","kind":"x"`, `"a","kind":"x"`, ""},
		{`{}`, "1e3 ", float64(1000), ""},
		{`{"x-kubernetes-int-or-string":true}`, "80", int64(80), ""},
		{`{"x-kubernetes-int-or-string":true}`, "80%", "80%", ""},
		{`{"x-kubernetes-int-or-string":true}`, `"80"`, "80", ""},
		{`{"x-kubernetes-int-or-string":true}`, "true", "true", ""},
		{`{"x-kubernetes-int-or-string":true}`, "null", "null", ""},
		{`{"x-kubernetes-int-or-string":true,"nullable":true}`, "null", nil, ""},
		{`{"x-kubernetes-int-or-string":true}`, "1.5", "1.5", ""},
		{`{"x-kubernetes-preserve-unknown-fields":true}`, "[1]", []any{int64(1)}, ""},
		{`{"x-kubernetes-preserve-unknown-fields":true}`, "text", "text", ""},
		{`{"type":"string","enum":["Always","Never"]}`, "Always", "Always", ""},
		{`{"type":"string","enum":["Always","Never"]}`, "always", nil, `"always": the value is one of Always, Never`},
	} {
		value, err := parseKind(t, `{"properties":{"f":`+c.schema+`}}`).Field("f").ParseValue(c.text)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, "%s %s", c.schema, c.text)
			continue
		}
		require.NoError(t, err, "%s %s", c.schema, c.text)
		assert.Equal(t, c.want, value, "%s %s", c.schema, c.text)
	}
}

func TestSchema_At(t *testing.T) {
	s := parseKind(t, `{"type":"object","properties":{
		"list":{"type":"array","items":{"type":"object","properties":{"image":{"type":"string"}}}},
		"labels":{"type":"object","additionalProperties":{"type":"string"}},
		"any":{"x-kubernetes-preserve-unknown-fields":true},
		"replicas":{"type":"integer"}}}`)
	for _, path := range [][]string{{"list", "[name=a]", "image"}, {"list", "0", "image"}, {"list", "image"}, {"labels", "a.b/c"}} {
		field, err := s.At(path...)
		require.NoError(t, err, path)
		assert.Equal(t, "string", field.Type, path)
	}
	field, err := s.At("any", "a", "[0]", "b")
	require.NoError(t, err)
	assert.Empty(t, field.Type)

	for text, path := range map[string][]string{
		`field replicsa: no field "replicsa": did you mean replicas?`: {"replicsa"},
		`field Replicas: no field "Replicas": did you mean replicas?`: {"Replicas"},
		`field list.imge: no field "imge": did you mean image?`:       {"list", "imge"},
		`field replicas.a: no such field: the value is an integer`:    {"replicas", "a"},
		`field replicas.[0]: not a list, but an integer`:              {"replicas", "[0]"},
		`field list.[name=a].nothing: no field "nothing"`:             {"list", "[name=a]", "nothing"},
	} {
		_, err := s.At(path...)
		assert.EqualError(t, err, text)
	}
	var unknown *UnknownFieldError
	_, err = s.At("replicsa")
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, []string{"replicas"}, unknown.Suggestions)
}
