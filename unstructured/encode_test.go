package unstructured

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/jsonread"
)

// encoded returns the JSON of an object with the one field "v".
func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := Encode(&Object{Object: map[string]any{"v": v}})
	require.NoError(t, err)
	return strings.TrimSuffix(strings.TrimPrefix(string(data), `{"v":`), "}")
}

func TestEncode_SortsFields(t *testing.T) {
	obj := &Object{Object: map[string]any{
		"z": int64(1), "a": []any{map[string]any{"y": nil, "B": true, "b": false}}, "": "x",
		"m": map[string]any{"2": int64(2), "10": int64(10), "ä": int64(0), "z": map[string]any{}},
	}}
	data, err := Encode(obj)
	require.NoError(t, err)
	assert.Equal(t, `{"":"x","a":[{"B":true,"b":false,"y":null}],"m":{"10":10,"2":2,"z":{},"ä":0},"z":1}`, string(data))
}

func TestEncode_EscapesNoMoreThanNeeded(t *testing.T) {
	for text, want := range map[string]string{
		"":               `""`,
		"<a href=x>&amp": `"<a href=x>&amp"`,
		"\"\\/":          `"\"\\/"`,
		"\n\r\t":         `"\n\r\t"`,
		"\x00\x1f\x7f":   "\"\\u0000\\u001f\x7f\"",
		"Grüße 🦊":        `"Grüße 🦊"`,
		"a\xffb\xc0\xaf": "\"a\uFFFDb\uFFFD\uFFFD\"",
		"\xed\xa0\x80":   "\"\uFFFD\uFFFD\uFFFD\"",
	} {
		assert.Equal(t, want, encoded(t, text))
	}
	data, err := Encode(&Object{Object: map[string]any{"<\n\xff": nil}})
	require.NoError(t, err)
	assert.Equal(t, "{\"<\\n\uFFFD\":null}", string(data))
}

func TestEncode_Numbers(t *testing.T) {
	for want, v := range map[string]any{
		"0": int64(0), "-9223372036854775808": int64(math.MinInt64), "9223372036854775807": int64(math.MaxInt64), "18446744073709551615": uint64(math.MaxUint64),
		"0.1": 0.1, "-0": math.Copysign(0, -1), "1000000": 1e6, "1e+21": 1e21, "5e-324": 5e-324, "0.30000000000000004": 0.30000000000000004,
		"3": float64(3), "12345678901234567890": json.Number("12345678901234567890"), "1.50": json.Number("1.50"),
	} {
		assert.Equal(t, want, encoded(t, v))
	}
}

func TestEncode_EmptyAndNilDiffer(t *testing.T) {
	assert.Equal(t, "{}", encoded(t, map[string]any{}))
	assert.Equal(t, "null", encoded(t, map[string]any(nil)))
	assert.Equal(t, "[]", encoded(t, []any{}))
	assert.Equal(t, "null", encoded(t, []any(nil)))
	assert.Equal(t, "null", encoded(t, nil))
}

func TestEncode_WithoutKind(t *testing.T) {
	data, err := Encode(&Object{Object: map[string]any{}})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(data))
}

func TestEncode_NilObject(t *testing.T) {
	for _, obj := range []*Object{nil, {}} {
		data, err := Encode(obj)
		assert.EqualError(t, err, "cannot encode a nil object")
		assert.Nil(t, data)
	}
}

func TestEncode_ErrorNamesPath(t *testing.T) {
	deep := func(v any) map[string]any {
		return map[string]any{"spec": map[string]any{"foo": []any{int64(1), "a", v}}}
	}
	for want, object := range map[string]map[string]any{
		".spec.foo[2]: cannot encode chan int":                                                deep(make(chan int)),
		".spec.foo[2]: cannot encode NaN":                                                     deep(math.NaN()),
		".spec.foo[2]: cannot encode -Inf":                                                    deep(math.Inf(-1)),
		".spec.foo[2]: cannot encode func()":                                                  deep(func() {}),
		".spec.foo[2]: cannot encode complex128":                                              deep(1i),
		`.spec.foo[2]: cannot encode json.Number: "1x" is not a number`:                       deep(json.Number("1x")),
		`.spec.foo[2]: cannot encode json.Number: "" is not a number`:                         deep(json.Number("")),
		`.spec.foo[2]: cannot encode json.Number: "1e400" is too large a number`:              deep(json.Number("1e400")),
		".spec.foo[2].a.b: cannot encode chan int":                                            deep(map[string]map[string]chan int{"a": {"b": make(chan int)}}),
		".spec.foo[2][1]: cannot encode NaN":                                                  deep([]float64{0, math.NaN()}),
		".spec.foo[2]: cannot encode struct { C chan int }: json: unsupported type: chan int": deep(struct{ C chan int }{make(chan int)}),
		`["a.b/c"][""].x-y: cannot encode func()`:                                             {"a.b/c": map[string]any{"": map[string]any{"x-y": func() {}}}},
	} {
		data, err := Encode(&Object{Object: object})
		assert.EqualError(t, err, want)
		assert.Nil(t, data)
	}
}

func TestEncode_Cycles(t *testing.T) {
	m := map[string]any{}
	m["self"] = m
	list := []any{nil}
	list[0] = list
	var pointer any
	pointer = &pointer
	type slice []slice
	typed := slice{nil}
	typed[0] = typed
	type node struct{ Next *node }
	ring := &node{}
	ring.Next = ring
	for name, v := range map[string]any{"map": m, "list": list, "pointer": pointer, "typed slice": typed, "struct": ring} {
		t.Run(name, func(t *testing.T) {
			_, err := Encode(&Object{Object: map[string]any{"v": v}})
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 1000)
			assert.True(t, strings.HasPrefix(err.Error(), ".v"), err.Error())
		})
	}
}

func TestEncode_TooDeep(t *testing.T) {
	for depth, fits := range map[int]bool{jsonread.MaxDepth - 1: true, jsonread.MaxDepth: false} {
		var v any = "end"
		for range depth {
			v = []any{v}
		}
		data, err := Encode(&Object{Object: map[string]any{"kind": "A", "v": v}})
		assert.Equal(t, fits, err == nil, "%d: %v", depth, err)
		if fits {
			_, err = Decode(data)
			assert.NoError(t, err)
		}
	}
}

func TestEncode_SiblingsAreNotNested(t *testing.T) {
	list := make([]any, 7*jsonread.MaxDepth) // more than MaxDepth of each
	for i := range list {
		list[i] = []any{map[string]any{}, []any{}, new(string), []string{}, map[string]int{}, &struct{}{}}[i%6]
	}
	encoded(t, list)
}

func TestEncode_ResultIsACopy(t *testing.T) {
	first, err := Encode(&Object{Object: map[string]any{"a": "first"}})
	require.NoError(t, err)
	second, err := Encode(&Object{Object: map[string]any{"a": "other"}})
	require.NoError(t, err)
	assert.Equal(t, `{"a":"first"}`, string(first))
	clear(second)
	assert.Equal(t, `{"a":"first"}`, string(first))
}

func TestEncode_AfterError(t *testing.T) {
	for range 10 {
		_, err := Encode(&Object{Object: map[string]any{"a": "secret", "b": make(chan int)}})
		require.Error(t, err)
		data, err := Encode(&Object{Object: map[string]any{"c": int64(1)}})
		require.NoError(t, err)
		assert.Equal(t, `{"c":1}`, string(data))
	}
}
