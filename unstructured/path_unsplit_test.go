package unstructured

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const dotted = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b"}},"data":{"x":"1","x.y":"2","m":{}},` +
	`"word":"x","list":[{"name":"app"}],"set.at":1,"null.at":null}`

func TestGet_HintsAtUnsplitPath(t *testing.T) {
	obj, err := Decode([]byte(dotted))
	require.NoError(t, err)
	lazy, err := DecodeLazy([]byte(dotted))
	require.NoError(t, err)
	for _, c := range []struct {
		path []string
		want string // the error's text; "" for none
	}{
		{[]string{"spec.replicas"}, `["spec.replicas"]: no such field (each field is an argument of its own: "spec", "replicas")`},
		{[]string{".metadata.name"}, `[".metadata.name"]: no such field (each field is an argument of its own: "metadata", "name")`},
		{[]string{"data.m", "x"}, `["data.m"]: no such field (each field is an argument of its own: "data", "m")`},
		{[]string{"list[name=app].image"}, `["list[name=app].image"]: no such field (each field is an argument of its own: "list", "[name=app]", "image")`},
		{[]string{"status.a b"}, `["status.a b"]: no such field (ParsePath splits a path)`},
		{[]string{"{.spec.replicas}"}, `["{.spec.replicas}"]: no such field (each field is an argument of its own: "spec", "replicas")`},
		{[]string{"data", "m.x"}, ""}, // keys of data, labels and annotations have dots
		{[]string{"metadata", "labels", "app.kubernetes.io/name"}, ""},
		{[]string{"word.x"}, ""},
		{[]string{"nothing.x"}, ""},
		{[]string{".x"}, ""},
		{[]string{"null.at"}, ""},
		{[]string{"spec"}, ""},
	} {
		for name, get := range map[string]func() (any, bool, error){
			"Object": func() (any, bool, error) { return Get[any](obj, c.path...) },
			"Lazy":   func() (any, bool, error) { return Get[any](lazy, c.path...) },
		} {
			value, found, err := get()
			assert.Nil(t, value, "%s %q", name, c.path)
			assert.False(t, found, "%s %q", name, c.path)
			if c.want == "" {
				assert.NoError(t, err, "%s %q", name, c.path)
			} else {
				assert.EqualError(t, err, c.want, name)
			}
		}
	}
	n, found, err := Get[int](obj, "set.at")
	assert.Equal(t, []any{1, true, nil}, []any{n, found, err}, "there is such a field")
}

func TestSet_RejectsUnsplitPath(t *testing.T) {
	obj, err := Decode([]byte(dotted))
	require.NoError(t, err)
	before := obj.DeepCopy()
	assert.ErrorContains(t, Set(obj, 3, "spec.replicas"), `an argument of its own: "spec", "replicas"`)
	assert.ErrorContains(t, Set(&Object{}, 3, "spec.replicas"), `an argument of its own: "spec", "replicas"`)
	_, err = Delete(obj, "metadata.labels.a")
	assert.ErrorContains(t, err, `an argument of its own: "metadata", "labels", "a"`)
	assert.Equal(t, before, obj)

	require.NoError(t, Set(obj, 3, "set.at"))
	require.NoError(t, Set(obj, "3", "data", "m.x"))
	found, err := Delete(obj, "null.at")
	assert.NoError(t, err)
	assert.True(t, found)
}
