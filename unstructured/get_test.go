package unstructured

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func thing() *Object {
	return &Object{Object: map[string]any{
		"text": "a", "yes": true, "no": false, "int": int64(3), "float": 1.5, "whole": 3.0, "null": nil, "large": int64(1)<<53 + 1, "largest": int64(math.MaxInt64),
		"list": []any{int64(1), "b", nil, map[string]any{"c": "d"}}, "strings": []any{"a", "b"}, "none": []any{},
		"map": map[string]any{"a": int64(1), "n": nil, "m": map[string]any{"x": []any{int64(1)}}}, "labels": map[string]any{"app": "web", "a.b/c": ""}, "empty": map[string]any{},
		"mixed": []any{"a", int64(1)}, "half": map[string]any{"a": nil}, "0": "zero",
		"go": map[string]any{
			"int": 1, "int8": int8(-1), "int16": int16(1), "int32": int32(1), "uint": uint(1), "uint8": uint8(1), "uint16": uint16(1), "uint32": uint32(1), "uint64": uint64(1),
			"huge": uint64(math.MaxUint64), "float32": float32(0.5), "strings": []string{"a"},
		},
	}}
}

// read is Get with its type forgotten.
func read[T any](obj *Object, path ...string) (any, bool, error) { return Get[T](obj, path...) }

type getter = func(*Object, ...string) (any, bool, error)

func TestGet_Types(t *testing.T) {
	for name, c := range map[string]struct {
		get  getter
		path []string
		want any
	}{
		"string": {read[string], []string{"text"}, "a"}, "bool": {read[bool], []string{"yes"}, true}, "false": {read[bool], []string{"no"}, false},
		"int64": {read[int64], []string{"int"}, int64(3)}, "int": {read[int], []string{"int"}, 3}, "float64": {read[float64], []string{"float"}, 1.5},
		"whole float64": {read[float64], []string{"whole"}, 3.0}, "integer as float64": {read[float64], []string{"int"}, 3.0},
		"list": {read[[]any], []string{"strings"}, []any{"a", "b"}}, "map": {read[map[string]any], []string{"labels"}, map[string]any{"app": "web", "a.b/c": ""}},
		"strings": {read[[]string], []string{"strings"}, []string{"a", "b"}}, "no strings": {read[[]string], []string{"none"}, []string{}},
		"string map": {read[map[string]string], []string{"labels"}, map[string]string{"app": "web", "a.b/c": ""}}, "empty string map": {read[map[string]string], []string{"empty"}, map[string]string{}},
		"any string": {read[any], []string{"text"}, "a"}, "any number": {read[any], []string{"int"}, int64(3)}, "any list": {read[any], []string{"none"}, []any{}},
		"deep": {read[int64], []string{"map", "m", "x", "0"}, int64(1)}, "in a list": {read[string], []string{"list", "3", "c"}, "d"}, "dotted name": {read[string], []string{"labels", "a.b/c"}, ""},
		"digit for a name": {read[string], []string{"0"}, "zero"}, "leading zeros": {read[string], []string{"list", "001"}, "b"}, "everything": {read[map[string]any], nil, thing().Object},
		"Go's int": {read[int64], []string{"go", "int"}, int64(1)}, "int8": {read[int], []string{"go", "int8"}, -1}, "int16": {read[int], []string{"go", "int16"}, 1}, "int32": {read[int64], []string{"go", "int32"}, int64(1)},
		"uint": {read[int64], []string{"go", "uint"}, int64(1)}, "uint8": {read[int64], []string{"go", "uint8"}, int64(1)}, "uint16": {read[int64], []string{"go", "uint16"}, int64(1)},
		"uint32": {read[int64], []string{"go", "uint32"}, int64(1)}, "uint64": {read[int64], []string{"go", "uint64"}, int64(1)}, "float32": {read[float64], []string{"go", "float32"}, 0.5},
		"uint64 as float64": {read[float64], []string{"go", "uint64"}, 1.0},
	} {
		t.Run(name, func(t *testing.T) {
			value, found, err := c.get(thing(), c.path...)
			require.NoError(t, err)
			assert.True(t, found)
			assert.Equal(t, c.want, value)
		})
	}
}

func TestGet_NotFound(t *testing.T) {
	for name, path := range map[string][]string{
		"missing": {"nope"}, "missing parent": {"nope", "a", "b"}, "null": {"null"}, "null parent": {"null", "a"}, "null deep": {"map", "n", "x"},
		"past the end": {"list", "4"}, "far past the end": {"list", "99999999999999999999"}, "null element": {"list", "2"}, "null element's field": {"list", "2", "a"}, "empty list": {"none", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			for want, get := range map[any]getter{"": read[string], int64(0): read[int64], false: read[bool]} {
				value, found, err := get(thing(), path...)
				assert.NoError(t, err)
				assert.False(t, found)
				assert.Equal(t, want, value)
			}
			list, found, err := Get[[]string](thing(), path...)
			assert.NoError(t, err)
			assert.False(t, found)
			assert.Nil(t, list)
		})
	}
}

func TestGet_NilObject(t *testing.T) {
	for _, obj := range []*Object{nil, {}} {
		_, found, err := Get[string](obj, "a")
		assert.NoError(t, err)
		assert.False(t, found)
		_, found, err = Get[map[string]any](obj)
		assert.NoError(t, err)
		assert.False(t, found)
	}
}

func TestGet_MismatchNamesPathAndTypes(t *testing.T) {
	for want, c := range map[string]struct {
		get  getter
		path []string
	}{
		".text: is string, not int64":                                        {read[int64], []string{"text"}},
		".text: is string, not bool":                                         {read[bool], []string{"text"}},
		".text: is string, not float64":                                      {read[float64], []string{"text"}},
		".int: is int64, not string":                                         {read[string], []string{"int"}},
		".float: is float64, not int64":                                      {read[int64], []string{"float"}},
		".whole: is float64, not int":                                        {read[int], []string{"whole"}},
		".large: is int64, not float64":                                      {read[float64], []string{"large"}},
		".largest: is int64, not float64":                                    {read[float64], []string{"largest"}},
		".go.huge: is uint64, not int64":                                     {read[int64], []string{"go", "huge"}},
		".go.strings: is []string, not []any":                                {read[[]any], []string{"go", "strings"}},
		".map: is map[string]any, not []any":                                 {read[[]any], []string{"map"}},
		".list: is []any, not map[string]any":                                {read[map[string]any], []string{"list"}},
		".map: is map[string]any, not []string":                              {read[[]string], []string{"map"}},
		".list: is []any, not map[string]string":                             {read[map[string]string], []string{"list"}},
		".mixed[1]: is int64, not string":                                    {read[[]string], []string{"mixed"}},
		".half.a: is null, not string":                                       {read[map[string]string], []string{"half"}},
		".list[3].c: is string, not int64":                                   {read[int64], []string{"list", "3", "c"}},
		`.labels["a.b/c"]: is string, not bool`:                              {read[bool], []string{"labels", "a.b/c"}},
		`.list: is []any, which has no field "a"`:                            {read[string], []string{"list", "a"}},
		`.list: is []any, which has no field "-1"`:                           {read[string], []string{"list", "-1"}},
		`.list: is []any, which has no field ""`:                             {read[string], []string{"list", ""}},
		".text: is string, not map[string]any or []any":                      {read[string], []string{"text", "x"}},
		".: is map[string]any, not string":                                   {read[string], nil},
		".text: Get cannot read float32; read any and convert":               {read[float32], []string{"text"}},
		".text: Get cannot read []int; read any and convert":                 {read[[]int], []string{"text"}},
		".: Get cannot read unstructured.Unstructured; read any and convert": {read[Object], nil},
	} {
		t.Run(want, func(t *testing.T) {
			value, found, err := c.get(thing(), c.path...)
			assert.EqualError(t, err, want)
			assert.False(t, found)
			assert.Empty(t, value)
		})
	}
}

func TestGet_ResultIsACopy(t *testing.T) {
	obj := thing()
	m, _, err := Get[map[string]any](obj, "map")
	require.NoError(t, err)
	m["m"].(map[string]any)["x"].([]any)[0] = "changed"
	m["new"] = true
	list, _, err := Get[[]any](obj, "list")
	require.NoError(t, err)
	list[0] = "changed"
	list[3].(map[string]any)["c"] = "changed"
	labels, _, err := Get[map[string]string](obj, "labels")
	require.NoError(t, err)
	labels["app"] = "changed"
	names, _, err := Get[[]string](obj, "strings")
	require.NoError(t, err)
	names[0] = "changed"
	all, _, err := Get[any](obj)
	require.NoError(t, err)
	all.(map[string]any)["map"].(map[string]any)["a"] = "changed"
	assert.Equal(t, thing(), obj)
}

func TestGet_LeavesPathUnchanged(t *testing.T) {
	path := append(make([]string, 0, 8), "mixed")
	_, _, err := Get[[]string](thing(), path...)
	require.Error(t, err)
	assert.Empty(t, path[:2][1])
}

func TestGet_NilMapsAndLists(t *testing.T) {
	obj := &Object{Object: map[string]any{"m": map[string]any(nil), "l": []any(nil)}}
	m, found, err := Get[map[string]any](obj, "m")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Nil(t, m)
	l, found, err := Get[[]any](obj, "l")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Nil(t, l)
}

func TestGet_OtherGoTypesAsAny(t *testing.T) {
	value, found, err := Get[any](thing(), "go", "strings")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, []string{"a"}, value)
}
