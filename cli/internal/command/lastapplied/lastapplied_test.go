package lastapplied

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFormatted(t *testing.T) {
	const text = `{"kind":"ConfigMap","data":{"a":"1"}}`
	for _, c := range []struct{ format, text, want, err string }{
		{"json", text, "{\n  \"kind\": \"ConfigMap\",\n  \"data\": {\n    \"a\": \"1\"\n  }\n}", ""},
		{"yaml", text, "data:\n  a: \"1\"\nkind: ConfigMap\n", ""},
		{"name", text, "", ""},
		{"json", "{", "", "unexpected end of JSON input"},
		{"yaml", "{", "", "yaml"},
	} {
		got, err := formatted(c.text, c.format)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.format)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, got, c.format)
	}
}

func TestFind(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) *unstructured.Object {
		obj := &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		obj.SetNamespace(namespace)
		obj.SetName(name)
		return obj
	}
	all := []configuration{{obj: object("v1", "ConfigMap", "shop", "a")}, {obj: object("v1", "Secret", "shop", "a")}}
	assert.Same(t, &all[1], find(all, object("v1", "Secret", "shop", "a")))
	for _, changed := range []*unstructured.Object{
		object("v2", "Secret", "shop", "a"), object("v1", "Pod", "shop", "a"), object("v1", "Secret", "home", "a"), object("v1", "Secret", "shop", "b"),
	} {
		assert.Nil(t, find(all, changed))
	}
}

func TestEncode(t *testing.T) {
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "managedFields": []any{}}}}
	text, err := encode([]configuration{{obj: obj}, {obj: obj}}, "yaml")
	require.NoError(t, err)
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  managedFields: []\n  name: a\n"
	assert.Equal(t, one+"---\n"+one, text)
	_, err = encode(nil, "nonsense")
	require.ErrorContains(t, err, "nonsense")
}
