package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

var kGVK = schema.GroupVersionKind{Version: "v1", Kind: "K"}

func TestSchema_Skeleton(t *testing.T) {
	s := parseKind(t, `{"type":"object","properties":{"spec":{"type":"object","required":["mode","zones","owner"],
		"x-kubernetes-validations":[{"rule":"self.size < 9","message":"size is below 9"}],
		"properties":{
			"mode":{"type":"string","enum":["fast","safe"],"description":"How it works. A second sentence."},
			"size":{"type":"integer","default":3,"description":"The size."},
			"zones":{"type":"array","minItems":1,"items":{"type":"string","pattern":"^z-[0-9]+$"}},
			"owner":{"type":"object","required":["name","parts"],"properties":{"name":{"type":"string"},
				"parts":{"type":"array","items":{"type":"object","required":["weight"],"properties":{"weight":{"type":"number","minimum":2,"exclusiveMinimum":true}}}}}},
			"unused":{"type":"string"}}}}}`)
	skeleton := s.Skeleton(kGVK, "web")
	assert.Equal(t, strings.TrimLeft(`
apiVersion: v1
kind: K
metadata:
  name: web
# rule: size is below 9
spec:
  # How it works.
  # one of "fast", "safe"
  mode: "fast"
  owner:
    name: "web"
    parts:
    - weight: 3
  zones:
  - "z-1"
  # The size.
  # size: 3
`, "\n"), skeleton)
	_, err := unstructured.NewYAMLDecoder(strings.NewReader(skeleton)).Next()
	assert.NoError(t, err)
}

func TestSchema_Skeleton_EndsForRecursiveSchemas(t *testing.T) {
	for required, most := range map[string]int{`["next"]`: maxSkeletonDepth, `["next","other","third"]`: maxSkeletonFields + 3*maxSkeletonDepth} {
		s := parseKind(t, `{"type":"object","properties":{"spec":{"$ref":"#/components/schemas/Node"}}}`,
			`"Node":{"type":"object","required":`+required+`,"properties":{"next":{"$ref":"#/components/schemas/Node"},
				"other":{"$ref":"#/components/schemas/Node"},"third":{"$ref":"#/components/schemas/Node"}}}`)
		skeleton := s.Skeleton(kGVK, "web")
		fields := strings.Count(skeleton, "next:") + strings.Count(skeleton, "other:") + strings.Count(skeleton, "third:")
		assert.LessOrEqual(t, fields, most, required)
	}
}

// Schemas may be parts of themselves, several times.
func TestSchema_Skeleton_PartOfItself(t *testing.T) {
	s := parseKind(t, `{"type":"object","properties":{"spec":{"$ref":"#/components/schemas/Node"}}}`,
		`"Node":{"type":"object","required":["a"],"allOf":[{"$ref":"#/components/schemas/Node"},{"$ref":"#/components/schemas/Node"},{"required":["b","c"]}],
			"properties":{"a":{"$ref":"#/components/schemas/Other"},"b":{"type":"string"},"c":{"allOf":[{"type":"unknown"},{"type":"integer"}]}}}`,
		`"Other":{"type":"unknown","allOf":[{"$ref":"#/components/schemas/Other"},{"$ref":"#/components/schemas/Other"}]}`)
	assert.Contains(t, s.Skeleton(kGVK, "web"), "spec:\n  a: {}\n  b: \"example\"\n  c: 1\n")
}

func TestSchema_Skeleton_LongText(t *testing.T) {
	for field, want := range map[string]int{
		`"minLength":4096`:                 4096,
		`"minLength":4097`:                 len("example"),
		`"minLength":-9223372036854775808`: len("example"),
		`"minLength":9000000000000`:        len("example"),
		`"pattern":"^(ab){1000}$"`:         2000,
		`"pattern":"^` + strings.Repeat("(", 40) + "a" + strings.Repeat("b)+", 40) + `c$","minLength":50`: 50,
	} {
		s := parseKind(t, `{"type":"object","properties":{"spec":{"type":"object","required":["f"],"properties":{"f":{"type":"string",`+field+`}}}}}`)
		_, value, _ := strings.Cut(s.Skeleton(kGVK, "web"), "\n  f: ")
		assert.Len(t, strings.Trim(value, "\"\n"), want, field)
	}
}

func TestSchema_Skeleton_Scalars(t *testing.T) {
	for field, want := range map[string]string{
		`{"type":"integer","minimum":7}`:                                                            `7`,
		`{"type":"integer","maximum":0}`:                                                            `0`,
		`{"type":"integer","multipleOf":5}`:                                                         `5`,
		`{"type":"integer","maximum":1,"exclusiveMaximum":true}`:                                    `0`,
		`{"type":"integer","maximum":3,"multipleOf":5}`:                                             `0`,
		`{"type":"integer","minimum":-5,"maximum":-3}`:                                              `-3`,
		`{"type":"number","minimum":0.25,"maximum":0.75}`:                                           `0.5`,
		`{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":1,"exclusiveMaximum":true}`: `0.5`,
		`{"type":"boolean"}`:                                                                        `false`,
		`{"type":"string","format":"date-time"}`:                                                    `"2030-01-01T00:00:00Z"`,
		`{"type":"string","minLength":9}`:                                                           `"examplexx"`,
		`{"type":"string","maxLength":3}`:                                                           `"exa"`,
		`{"type":"string","pattern":"^(a|b)+\\.[A-Z]{2}(:[0-9]+)?$"}`:                               `"a.AA"`,
		`{"type":"string","pattern":"^[0-9a-f]{8}$"}`:                                               `"aaaaaaaa"`,
		`{"type":"string","pattern":"("}`:                                                           `"example"`,
		`{"x-kubernetes-int-or-string":true}`:                                                       `1`,
		`{"type":"object","minProperties":1,"additionalProperties":{"type":"integer"}}`:             `{"example":1}`,
		`{"type":"array","items":{"type":"string"}}`:                                                `[]`,
		`{"x-kubernetes-preserve-unknown-fields":true}`:                                             `{}`,
	} {
		s := parseKind(t, `{"type":"object","properties":{"spec":{"type":"object","required":["f"],"properties":{"f":`+field+`}}}}`)
		assert.Contains(t, s.Skeleton(kGVK, "web"), "\n  f: "+want+"\n", field)
	}
}

func TestSchema_Skeleton_Alternatives(t *testing.T) {
	s := parseKind(t, `{"type":"object","properties":{"spec":{"type":"object","oneOf":[{"required":["b"]},{"required":["a"]}],
		"properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`)
	skeleton := s.Skeleton(kGVK, "web")
	assert.Contains(t, skeleton, "b: ")
	assert.NotContains(t, skeleton, "a: ")
	_, err := unstructured.NewYAMLDecoder(strings.NewReader(skeleton)).Next()
	require.NoError(t, err)
}

func TestRequiredByServer_IsDecoded(t *testing.T) {
	assert.Greater(t, len(requiredByServer()), 20)
}
