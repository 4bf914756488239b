package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/unstructured"
)

const gadgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        description: A Gadget.
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "self.zone == oldSelf.zone", message: zone is fixed}
            properties:
              size: {type: integer, format: int32, minimum: 0, maximum: 9, default: 0, description: "The size | of <it>."}
              zone: {type: string}
              mode: {type: string, enum: [A, B, C, D, E, ""], default: A}
              owner:
                type: string
                pattern: ^[a-z]+$
                maxLength: 5
                x-kubernetes-validations:
                - {rule: "self  ==\n oldSelf", messageExpression: "'owner is ' + oldSelf"}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              tags: {type: array, x-kubernetes-list-type: set, maxItems: 3, items: {type: string, minLength: 1, enum: [left, right]}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  oneOf: [{required: [a]}, {not: {required: [b]}}]
                  properties: {name: {type: string}, a: {type: object, additionalProperties: {type: number, multipleOf: 0.5}}}
`

// gadgetClient knows kind Gadget alone.
func gadgetClient(t *testing.T) *Client {
	t.Helper()
	offline, err := NewOffline("")
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(gadgetDefinition), &fields))
	c, err := offline.WithDefinitions(&unstructured.Object{Object: fields})
	require.NoError(t, err)
	return c
}

func explainGadget(t *testing.T, opts *ExplainOptions, path ...string) *Explanation {
	t.Helper()
	explanation, err := gadgetClient(t).Explain(t.Context(), widgets.WithKind("Gadget"), path, opts)
	require.NoError(t, err)
	return explanation
}

func TestExplanation_WriteText_Details(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, explainGadget(t, &ExplainOptions{Recursive: true}, "spec").WriteText(&text, &TextOptions{Details: true}))
	assert.Equal(t, `GROUP:      example.com
KIND:       Gadget
VERSION:    v1

FIELD: spec <Object>
DETAILS:
    x-kubernetes-validations: self.zone == oldSelf.zone (zone is fixed)

DESCRIPTION:
    <empty>
FIELDS:
  mode	<string>
  enum: A, B, C, D, ....
  default: "A"
  owner	<string>
  immutable
  maxLength: 5
  pattern: ^[a-z]+$
  x-kubernetes-validations: self == oldSelf (message: 'owner is ' + oldSelf)
  parts	<[]Object>
  items.oneOf: [{"required":["a"]},{"not":{"required":["b"]}}]
  x-kubernetes-list-map-keys: name
  x-kubernetes-list-type: map
    a	<map[string]number>
    additionalProperties.multipleOf: 0.5
    name	<string> -required-
  port	<Object>
  x-kubernetes-int-or-string: true
  size	<integer> -required-
  format: int32
  maximum: 9
  minimum: 0
  tags	<[]string>
  items.enum: ["left","right"]
  items.minLength: 1
  maxItems: 3
  x-kubernetes-list-type: set
  zone	<string>
  immutable

`, text.String())
}

func TestExplanation_Deprecated(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index.json": `{"documents": {"api/v1": "1"}}`,
		"api_v1@1.json": `{"components": {"schemas": {"K": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "K"}],
			"description": "K is old.\n\nDeprecated: This API is deprecated in v1.33+. Use L. It is better.", "properties": {
				"old": {"type": "string", "description": "The old one. Deprecated: use new. It works."}, "new": {"type": "string"}}}}}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	c, err := NewOffline(dir)
	require.NoError(t, err)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "K"}
	explanation, err := c.Explain(t.Context(), gvk, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "Deprecated: This API is deprecated in v1.33+. Use L", explanation.Deprecated)
	assert.Equal(t, []string{"", "Deprecated: use new"}, []string{explanation.Fields[0].Deprecated, explanation.Fields[1].Deprecated})
	var text bytes.Buffer
	require.NoError(t, explanation.WriteText(&text, &TextOptions{Details: true}))
	assert.Contains(t, text.String(), "DETAILS:\n    deprecated: This API is deprecated in v1.33+. Use L\n")
	assert.Contains(t, text.String(), "  old\t<string>\n  deprecated: use new\n")

	s, err := c.Kind(t.Context(), gvk)
	require.NoError(t, err)
	result := s.Validate(t.Context(), &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "a"}}}, nil)
	assert.Contains(t, result.Problems, Problem{Path: []any{}, Keyword: "deprecated", IsWarning: true, Message: "Deprecated: This API is deprecated in v1.33+. Use L"})
}

func TestExplanation_WriteMarkdown(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, explainGadget(t, &ExplainOptions{Recursive: true}, "spec", "parts").WriteMarkdown(&text))
	assert.Equal(t, "# Gadget.spec.parts\n\n`[]Object` of `example.com/v1`\n\n"+
		"- items.oneOf: `[{\"required\":[\"a\"]},{\"not\":{\"required\":[\"b\"]}}]`\n- x-kubernetes-list-map-keys: `name`\n- x-kubernetes-list-type: `map`\n\n"+
		"| field | type | constraints | description |\n|---|---|---|---|\n"+
		"| `a` | `map[string]number` | additionalProperties.multipleOf: `0.5` |  |\n| `name` | `string` | required |  |\n", text.String())

	text.Reset()
	require.NoError(t, explainGadget(t, nil, "spec").WriteMarkdown(&text))
	assert.Contains(t, text.String(), "| `size` | `integer` | required<br>format: `int32`<br>maximum: `9`<br>minimum: `0` | The size \\| of &lt;it>. |\n")

	text.Reset()
	require.NoError(t, explainGadget(t, nil).WriteMarkdown(&text))
	assert.True(t, strings.HasPrefix(text.String(), "# Gadget\n\n`example.com/v1`\n\nA Gadget.\n\n| field |"), text.String())
	assert.NotContains(t, text.String(), "`spec.size`", "not recursive")
	assert.Equal(t, "`` a`b ``", code("a`b"))
}

func TestExplanation_JSON(t *testing.T) {
	text, err := json.Marshal(explainGadget(t, nil, "spec", "owner"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"group": "example.com", "version": "v1", "kind": "Gadget", "path": ["spec", "owner"], "name": "owner", "type": "string",
		"immutable": true, "constraints": {"maxLength": 5, "pattern": "^[a-z]+$",
		"x-kubernetes-validations": [{"rule": "self  ==\n oldSelf", "messageExpression": "'owner is ' + oldSelf"}]}}`, string(text))
}

func TestClient_Explain_UnknownField(t *testing.T) {
	c := gadgetClient(t)
	for path, want := range map[string]UnknownFieldError{
		"spce":              {"spce", []string{"spec"}},
		"spec.sise":         {"sise", []string{"size"}},
		"spec.parts.nam":    {"nam", []string{"name"}},
		"spec.parts.a.any":  {"any", nil},
		"spec.none.further": {"none", []string{"zone", "mode"}},
	} {
		_, err := c.Explain(t.Context(), widgets.WithKind("Gadget"), strings.Split(path, "."), nil)
		var unknown *UnknownFieldError
		require.ErrorAs(t, err, &unknown, path)
		assert.Equal(t, want, *unknown, path)
		assert.ErrorContains(t, err, "explain Gadget of example.com/v1: ")
	}
}

// explainDocument explains kind Node of a document with the schemas.
func explainDocument(t *testing.T, schemas string, opts *ExplainOptions, path ...string) (*Explanation, error) {
	t.Helper()
	document, err := ParseDocument([]byte(`{"components":{"schemas":` + schemas + `}}`))
	require.NoError(t, err)
	node, err := document.Kind(widgets.WithKind("Node"))
	require.NoError(t, err)
	c, err := NewOffline("")
	require.NoError(t, err)
	c.override = map[schema.GroupVersionKind]*Schema{widgets.WithKind("Node"): node}
	return c.Explain(t.Context(), widgets.WithKind("Node"), path, opts)
}

const nodeKind = `"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Node","version":"v1"}]`

func TestClient_Explain_Cycles(t *testing.T) {
	const ref = `{"$ref":"#/components/schemas/a.Node"}`
	all := `{"a.Node":{"type":"object","properties":{"next":` + ref + `,"all":{"type":"array","items":` + ref + `},"loop":{"$ref":"#/components/schemas/a.Loop"}},` + nodeKind + `},
		"a.Loop":{"type":"array","items":{"$ref":"#/components/schemas/a.Loop"},"additionalProperties":{"$ref":"#/components/schemas/a.Loop"},"allOf":[{"$ref":"#/components/schemas/a.Loop"},{"$ref":"#/components/schemas/a.None"}]}}`
	e, err := explainDocument(t, all, &ExplainOptions{Recursive: true}, "next", "all", "next")
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, e.WriteText(&text, &TextOptions{Details: true}))
	assert.Contains(t, text.String(), "FIELDS:\n  all\t<[]Node>\n    all\t<[]Node>\n    loop\t<array>\n    next\t<Node>\n  loop\t<array>\n")
	_, err = explainDocument(t, all, nil, "loop", "x")
	assert.ErrorContains(t, err, `"x"`)
}

func TestClient_Explain_Bounds(t *testing.T) {
	var schemas []string
	for i := range 12 { // each refers to all: 12! paths
		var fields []string
		for k := range 12 {
			fields = append(fields, fmt.Sprintf(`"f%d":{"$ref":"#/components/schemas/a.N%d"}`, k, k))
		}
		schemas = append(schemas, fmt.Sprintf(`"a.N%d":{"type":"object","properties":{%s}}`, i, strings.Join(fields, ",")))
	}
	all := `{` + strings.Join(schemas, ",") + `,"a.Node":{"type":"object","properties":{"f":{"$ref":"#/components/schemas/a.N0"}},` + nodeKind + `}}`
	_, err := explainDocument(t, all, &ExplainOptions{Recursive: true})
	require.ErrorIs(t, err, errTooLarge)
	e, err := explainDocument(t, all, &ExplainOptions{Recursive: true, MaxDepth: 3})
	require.NoError(t, err)
	assert.Len(t, e.Fields[0].Fields[1].Fields, 12)
	assert.Empty(t, e.Fields[0].Fields[1].Fields[2].Fields)
}

func TestClient_Explain_HostileDocuments(t *testing.T) {
	const count = 20_000
	ref := func(i int) string { return fmt.Sprintf(`{"$ref":"#/components/schemas/a.N%d"}`, i) }
	for name, form := range map[string]string{
		"list of lists":    `"items":REF`,
		"alternatives":     `"allOf":[REF,REF],"description":"x"`,
		"fields":           `"properties":{"f":REF}`,
		"large constraint": `"properties":{"f":REF,"g":REF},"anyOf":[{"pattern":"` + strings.Repeat("a", 100_000) + `"}]`,
	} {
		var schemas []string
		for i := range count {
			if strings.Contains(form, "anyOf") && i == 30 {
				break
			}
			schemas = append(schemas, fmt.Sprintf(`"a.N%d":{%s}`, i, strings.ReplaceAll(form, "REF", ref(i+1))))
		}
		all := `{` + strings.Join(schemas, ",") + `,"a.Node":{"properties":{"f":` + ref(0) + `},` + nodeKind + `}}`
		_, err := explainDocument(t, all, &ExplainOptions{Recursive: true})
		require.ErrorIs(t, err, errTooLarge, name)
	}
}

func FuzzClient_Explain(f *testing.F) {
	f.Add([]byte(widgetDocument("color")))
	f.Add(objectMetaDocument)
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := ParseDocument(data)
		if err != nil {
			return
		}
		c, err := NewOffline("")
		require.NoError(t, err)
		for gvk := range document.Kinds() {
			s, err := document.Kind(gvk)
			if err != nil {
				continue
			}
			c.override = map[schema.GroupVersionKind]*Schema{gvk: s}
			e, err := c.Explain(t.Context(), gvk, nil, &ExplainOptions{Recursive: true, MaxDepth: 4})
			if err != nil {
				continue
			}
			require.NoError(t, e.WriteText(io.Discard, &TextOptions{Details: true}))
			require.NoError(t, e.WriteMarkdown(io.Discard))
			_, err = json.Marshal(e)
			require.NoError(t, err)
		}
	})
}

func TestWrap(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"one two three":           "one two\nthree",
		"a  b\tc d":               "a  b\tc d",
		"12345678901234 b":        "12345678901234\nb",
		"a 12345678901234":        "a\n12345678901234",
		" 1234567890 b":           " 1234567890\nb",
		"a\n\n  b c":              "a\n\n  b c",
		"123456789     \nnext":    "123456789\nnext",
		"trailing  ":              "trailing  ",
		"ab\u00a0cd efgh ijkl":    "ab\u00a0cd efgh\nijkl",
		"äöüß äöüß ä":             "äöüß äöüß\nä",
		"indented:\n - a b c d e": "indented:\n - a b c d\ne",
	} {
		assert.Equal(t, want, wrap(text, 10), "%q", text)
	}
}
