package unstructured

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const manyValues = `{"kind":"K","apiVersion":"v1","none":null,"text":"x","map":{"b":{"n":2},"a":{"n":1},"c":null},
	"list":[{"n":1,"tags":["a","b"]},{"tags":[]},null,{"n":3,"tags":["c"]}],"mixed":[{"n":1},{"n":"x"}],"lists":[[1,2],[3]],"a.b":[1]}`

func TestGetAll_Values(t *testing.T) {
	for text, want := range map[string][]any{
		"list[*].n": {int64(1), int64(3)}, "list[*].tags[*]": {"a", "b", "c"}, "map[*].n": {int64(1), int64(2)}, "lists[*][*]": {int64(1), int64(2), int64(3)},
		"lists[*][0]": {int64(1), int64(3)}, "lists[1][*]": {int64(3)}, "list[n=3].tags[*]": {"c"}, "missing[*].n": nil, "none[*]": nil, "list[*].missing[*]": nil,
		"text": {"x"}, "missing": nil, "list[9][*]": nil, `["a.b"][*]`: {int64(1)}, "mixed[*].n": {int64(1), "x"},
	} {
		fields, err := ParsePath(text)
		require.NoError(t, err)
		got, err := GetAll[any](decoded(t, manyValues), fields...)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		got, err = GetAll[any](lazy(t, manyValues), fields...)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	all, err := GetAll[any](decoded(t, `{"kind":"K","apiVersion":"v1"}`), "[*]")
	require.NoError(t, err)
	assert.Equal(t, []any{"v1", "K"}, all)
	none, err := GetAll[string]((*Object)(nil), "a", "[*]")
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestGetAll_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"mixed[*].n":       ".mixed[1].n: is string, not int64",
		"text[*]":          ".text: is string, not map[string]any or []any",
		"text[*].n":        ".text: is string, not map[string]any or []any",
		"list[*].n[*]":     ".list[0].n: is int64, not map[string]any or []any",
		"list[*].n.deeper": ".list[0].n: is int64, not map[string]any or []any",
		"lists[*].n":       `.lists[0]: is []any, which has no field "n"`,
		"mixed[*]":         ".mixed[0]: is map[string]any, not int64",
		"text":             ".text: is string, not int64",
		`["map.b"][*]`:     `["map.b"]: no such field (each field is an argument of its own: "map", "b")`,
	} {
		fields, err := ParsePath(text)
		require.NoError(t, err)
		got, err := GetAll[int64](decoded(t, manyValues), fields...)
		require.EqualError(t, err, want, text)
		assert.Nil(t, got)
		_, err = GetAll[int64](lazy(t, manyValues), fields...)
		require.EqualError(t, err, want, text)
	}
}

func TestGetAll_CopiesValues(t *testing.T) {
	obj := decoded(t, manyValues)
	maps, err := GetAll[map[string]any](obj, "map", "[*]")
	require.NoError(t, err)
	maps[0]["n"] = "changed"
	n, err := GetAll[int64](obj, "map", "[*]", "n")
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2}, n)
}

func TestGet_RejectsWildcard(t *testing.T) {
	const want = ".map: [*] selects more than one value (GetAll reads them)"
	obj := decoded(t, manyValues)
	_, _, err := Get[any](obj, "map", "[*]", "n")
	require.EqualError(t, err, want)
	_, _, err = Get[any](lazy(t, manyValues), "map", "[*]", "n")
	require.EqualError(t, err, want)
	require.EqualError(t, Set(obj, 1, "map", "[*]"), want)
	_, err = Delete(obj, "map", "[*]")
	require.EqualError(t, err, want)
	assert.Equal(t, decoded(t, manyValues), obj)
}
