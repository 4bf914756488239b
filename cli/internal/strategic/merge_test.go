package strategic

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// document has a kind with every way to merge a field.
const document = `{"openapi":"3.0.0","info":{"title":"test","version":"1"},"paths":{},"components":{"schemas":{"Node":{"type":"object",
	"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Node"}],"properties":{
	"scalar":{"type":"string"},"name":{"type":"string"},"map":{"type":"object","additionalProperties":{"type":"string"}},
	"child":{"$ref":"#/components/schemas/Node"},
	"replaced":{"allOf":[{"$ref":"#/components/schemas/Node"}],"x-kubernetes-patch-strategy":"replace"},
	"retained":{"allOf":[{"$ref":"#/components/schemas/Node"}],"x-kubernetes-patch-strategy":"retainKeys"},
	"atomic":{"type":"array","items":{"type":"string"}},
	"set":{"type":"array","items":{"type":"string"},"x-kubernetes-patch-strategy":"merge"},
	"items":{"type":"array","items":{"$ref":"#/components/schemas/Node"},"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"name"}}}}}}`

// TestApply_EqualsApimachinery compares results with those of apimachinery's strategicpatch, recorded for drawn objects and patches. A
// case without merged is an error there. Its module would be a further requirement of programs.
func TestApply_EqualsApimachinery(t *testing.T) {
	kind := nodeKind(t)
	file, err := os.Open("testdata/apimachinery.jsonl")
	require.NoError(t, err)
	defer file.Close()
	decoder := json.NewDecoder(file)
	count := 0
	for ; decoder.More(); count++ {
		var c struct{ Object, Patch, Merged json.RawMessage }
		require.NoError(t, decoder.Decode(&c))
		merged, err := apply(t, c.Object, c.Patch, kind)
		if c.Merged == nil {
			require.Error(t, err, "case %d: %s\n%s", count, c.Object, c.Patch)
			continue
		}
		require.NoError(t, err, "case %d: %s\n%s", count, c.Object, c.Patch)
		require.JSONEq(t, string(c.Merged), string(merged), "case %d: %s\n%s", count, c.Object, c.Patch)
	}
	assert.Equal(t, 400, count)
}

func nodeKind(t *testing.T) *schema.Schema {
	t.Helper()
	parsed, err := schema.ParseDocument([]byte(document))
	require.NoError(t, err)
	kind, err := parsed.Kind(kschema.GroupVersionKind{Version: "v1", Kind: "Node"})
	require.NoError(t, err)
	return kind
}

func apply(t *testing.T, object, patch []byte, kind *schema.Schema) ([]byte, error) {
	t.Helper()
	var into, changes map[string]any
	require.NoError(t, json.Unmarshal(object, &into))
	require.NoError(t, json.Unmarshal(patch, &changes))
	merged, err := Apply(into, changes, kind)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(merged)
	require.NoError(t, err)
	return encoded, nil
}

func TestApply_InvalidPatches(t *testing.T) {
	kind := nodeKind(t)
	const object = `{"items":[{"name":"a"}],"set":["a"]}`
	for patch, want := range map[string]string{
		`{"$patch":"nonsense"}`:                              "unknown patch type: nonsense",
		`{"items":[{"scalar":"a"}]}`:                         "does not contain declared merge key: name",
		`{"items":[{"$patch":"delete"}]}`:                    "does not contain declared merge key: name",
		`{"items":[{"name":"a","$patch":"x"}]}`:              "unknown patch type: x",
		`{"items":["a"]}`:                                    "expected a map, but received a string",
		`{"$retainKeys":["scalar"],"name":"a"}`:              "invalid patch format of retainKeys",
		`{"$setElementOrder/items":7}`:                       "invalid patch format of setElementOrder list",
		`{"items":[{"name":{"not":"comparable"},"set":[]}]}`: "",
	} {
		_, err := apply(t, []byte(object), []byte(patch), kind)
		if want == "" {
			require.NoError(t, err, patch)
			continue
		}
		assert.ErrorContains(t, err, want, patch)
	}
}
