package jsonpath

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

func testData() map[string]any {
	return map[string]any{
		"kind": "List", "count": int64(3), "ratio": 0.5, "none": nil, "lists": []any{[]any{int64(1)}, []any{}, []any{int64(2)}},
		"items": []any{
			map[string]any{"name": "a", "labels": map[string]any{"x.y/z": "1"}, "size": int64(1), "parts": []any{"p", "q"}},
			map[string]any{"name": "b", "size": int64(20), "ready": true},
		},
	}
}

func execute(text string, data any, opts *Options) (string, error) {
	template, err := Parse(text, opts)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = template.Execute(&out, data)
	return out.String(), err
}

func TestTemplate_Execute(t *testing.T) {
	for text, want := range map[string]string{
		`{.kind}`:                                           "List",
		`a {.count} {.none}`:                                "a 3 null",
		`{.items[*].name}`:                                  "a b",
		`{.items[0].labels}`:                                `{"x.y/z":"1"}`,
		`{.items[0].labels.x\.y/z}`:                         "1",
		`{.items[0].labels['x\.y/z']}`:                      "1",
		`{.items[0]['name','size']}`:                        "a 1",
		`{.items[?(@.size>1.5)].name}`:                      "b",
		`{.items[?(@.ready)].name}`:                         "b",
		`{.items[?(@.name!="b")].size}`:                     "1",
		`{range .items[*]}{.name}={.size};{end}!`:           "a=1;b=20;!",
		`{range .items[0:1]}{range .parts[*]}{@}{end}{end}`: "pq",
		`{range .items[2:2]}{.missing}{end}x`:               "x",
		`{..name}`:                                          "a b",
		`{.lists[*][*]}`:                                    "1 2",
		`{.items[0].*}`:                                     `{"x.y/z":"1"} a ["p","q"] 1`,
		`{"a\\"}{'it\'s'}`:                                  `a\it's`,
		`{.items[-1].size} {.ratio}`:                        "20 0.5",
	} {
		got, err := execute(text, testData(), nil)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestTemplate_ExecuteErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{.x}`:                            "jsonpath: x is not found",
		`{.items[2]}`:                     "jsonpath: array index out of bounds: index 2, length 2",
		`{.items[-3]}`:                    "jsonpath: array index out of bounds: index -3, length 2",
		`{.items[1:0]}`:                   "jsonpath: starting index 1 is greater than ending index 0",
		`{.items[0:5]}`:                   "jsonpath: array index out of bounds: index 4, length 2",
		`{.kind[0]}`:                      "jsonpath: a string is not a list",
		`{.kind[?(@.x)]}`:                 "jsonpath: a string is not a list and cannot be filtered",
		`{.items[?(@.size=="1")]}`:        "jsonpath: incompatible types for comparison: a number and a string",
		`{.items[?(@.parts==1)]}`:         "jsonpath: invalid type for comparison: only texts, numbers and bools can be compared",
		`{.items[1:][?(@)]}`:              "jsonpath: a map is not a list and cannot be filtered",
		`{.items[?(@.*=="a")]}`:           "jsonpath: can only compare one element at a time",
		`{.items[1:]..[?(@.ready<true)]}`: "jsonpath: a map is not a list and cannot be filtered",
	} {
		got, err := execute(text, testData(), nil)
		require.EqualError(t, err, want, text)
		assert.Empty(t, got, text)
	}
	_, err := execute(`{[?(@.ready<true)]}`, []any{map[string]any{"ready": true}}, nil)
	require.EqualError(t, err, "jsonpath: invalid type for comparison: bools have no order (operator <)")
}

func TestParse_Errors(t *testing.T) {
	for text, want := range map[string]string{
		`{.a`:                "jsonpath: byte 3: an action without its }",
		"{.a\n}":             "jsonpath: byte 3: an action without its }",
		`x{.a[0}`:            "jsonpath: byte 4: a [ without its ]",
		`{.a[1:2:3:4]}`:      `jsonpath: byte 4: "1:2:3:4" is no index, slice or name in single quotes`,
		`{.a[0, x]}`:         `jsonpath: byte 7: "x" is no index, slice or name in single quotes`,
		`{.a[::0]}`:          "jsonpath: byte 4: the step of a slice is 0, not above 0",
		`{.a[-]}`:            `jsonpath: byte 4: "-" is no index`,
		`{.a[?(@.b==1]}`:     "jsonpath: byte 3: a filter without its )]",
		`{.a[?(@.b==)]}`:     "jsonpath: byte 9: == has nothing to compare on one side",
		`{.a[?(@.b=~"x")]}`:  `jsonpath: byte 9: "=" is no operator (==, !=, <, <=, > and >= are)`,
		`{.a[?(@.b=1)]}`:     `jsonpath: byte 9: "=" is no operator (==, !=, <, <=, > and >= are)`,
		`{.a[?(@.b=="x)]}`:   "jsonpath: byte 11: a text without its closing quote",
		`{.a[?(@.b==c)]}`:    `jsonpath: byte 11: "c" is not known: a field begins with a dot, a text with a quote`,
		`{"x}`:               "jsonpath: byte 1: a text without its closing quote",
		`{"\q"}`:             "jsonpath: byte 2: an unknown escape sequence",
		`{end}`:              "jsonpath: byte 0: {end} without a {range}",
		`{range .a}{.b}`:     "jsonpath: byte 0: {range} without its {end}",
		`{range .a}{end .b}`: "jsonpath: byte 10: {end} has nothing else in its braces",
		`{.a range .b}`:      "jsonpath: byte 4: range is not at the beginning of its action",
		`{....a}`:            "jsonpath: byte 3: .. behind ..",
		`{1.2.3}`:            `jsonpath: byte 1: "1.2.3" is no number`,
		`{(.a)}`:             `jsonpath: byte 1: "(" is no part of an action`,
	} {
		_, err := Parse(text, nil)
		assert.EqualError(t, err, want, text)
	}
}

func TestTemplate_Limits(t *testing.T) {
	_, err := Parse(strings.Repeat("x", maxTemplate+1), nil)
	require.ErrorContains(t, err, "more than 65536")
	_, err = Parse(strings.Repeat("{range @}", maxRanges+1)+strings.Repeat("{end}", maxRanges+1), nil)
	require.ErrorContains(t, err, "more than 32 ranges")

	_, err = execute(`{.kind}{.kind}`, testData(), &Options{MaxOutput: 7})
	require.EqualError(t, err, "jsonpath: the output has more than 7 bytes")

	template, err := Parse(`{[0,0,0,0,0][0,0,0,0,0]}`, nil)
	require.NoError(t, err)
	e := &evaluation{values: maxValues - 50}
	err = e.run(template.nodes, []any{[]any{"x"}}, func(result) { t.Error("a result") })
	require.EqualError(t, err, "the template selects more than 5000000 values")

	for _, text := range []string{`{.*}`, `{[*]}`, `{[0:]}`, `{[?(@)]}`, `{[?(@.*)]}`} {
		template, err := Parse(text, nil)
		require.NoError(t, err)
		e := &evaluation{values: maxValues - 1}
		_, err = template.nodes[0].steps[0].apply(e, []any{[]any{[]any{1, 2}}, []any{[]any{3, 4}}})
		require.ErrorIs(t, err, errTooManyValues, "%s, during the step", text)
	}

	cycle := map[string]any{}
	cycle["self"] = cycle
	_, err = execute(`{..x}`, cycle, nil)
	require.ErrorContains(t, err, ".. descends more than 10000 levels")
}

func TestTemplate_Data(t *testing.T) {
	object := &unstructured.Object{Object: testData()}
	lazy, err := unstructured.DecodeLazy([]byte(`{"kind":"List","apiVersion":"v1"}`))
	require.NoError(t, err)
	for _, data := range []any{object, lazy, testData()} {
		got, err := execute(`{.kind}`, data, nil)
		require.NoError(t, err)
		assert.Equal(t, "List", got)
	}
	for _, data := range []any{nil, (*unstructured.Object)(nil), (*unstructured.Lazy)(nil), &unstructured.Object{}} {
		got, err := execute(`{.kind}`, data, &Options{AllowMissingKeys: true})
		require.NoError(t, err)
		assert.Empty(t, got)
	}
	_, err = execute(`{.kind}`, struct{}{}, nil)
	require.ErrorContains(t, err, "the data is struct {}")
	_, err = execute(`{.kind}`, &unstructured.Lazy{}, nil)
	require.Error(t, err)

	got, err := execute(`{.a} {.b} {.c} {[?(@==1)]}`, map[string]any{"a": uint8(1), "b": float32(1.5), "c": uint64(math.MaxUint64)}, nil)
	require.Error(t, err)
	assert.Empty(t, got)
	got, err = execute(`{[?(@>=1)]}`, []any{uint8(1), float32(1.5), uint64(math.MaxUint64), int32(0)}, nil)
	require.NoError(t, err)
	assert.Equal(t, "1 1.5 18446744073709551615", got)
	_, err = execute(`{.a}`, map[string]any{"a": struct{}{}}, nil)
	require.ErrorContains(t, err, "a result of type struct {}")
	_, err = execute(`{.a}`, map[string]any{"a": []any{math.NaN()}}, nil)
	require.ErrorContains(t, err, "encode a result")
}

func TestTemplate_Values(t *testing.T) {
	template, err := Parse(`names: {.items[*].name}{range .lists[*]}, {[*]}{end}`, nil)
	require.NoError(t, err)
	values, err := template.Values(testData())
	require.NoError(t, err)
	assert.Equal(t, []any{"a", "b", int64(1), int64(2)}, values)

	template, err = Parse(`{.x}`, nil)
	require.NoError(t, err)
	_, err = template.Values(testData())
	require.EqualError(t, err, "jsonpath: x is not found")
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestTemplate_ExecuteFailingWriter(t *testing.T) {
	template, err := Parse(`{.kind}`, nil)
	require.NoError(t, err)
	require.ErrorIs(t, template.Execute(failingWriter{io.ErrClosedPipe}, testData()), io.ErrClosedPipe)
}

// FuzzTemplate checks that no template panics, runs without bound or changes the data.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		`{range .items[*]}{.name}{"\n"}{end}`, `{.items[?(@.size>1)].name}`, `{..[0]}`, `{.items[0,1]['name','size']}`, `{.items[-1:0:2]}`, `{'\''}{1.5}{true}`, `{..}{@}{$}`,
	} {
		f.Add(text)
	}
	before, err := unstructured.Encode(&unstructured.Object{Object: testData()})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		template, err := Parse(text, &Options{AllowMissingKeys: len(text)%2 == 0, MaxOutput: 1 << 20})
		if err != nil {
			return
		}
		data := testData()
		var first, second bytes.Buffer
		firstErr := template.Execute(&first, data)
		secondErr := template.Execute(&second, data)
		assert.Equal(t, first.String(), second.String())
		assert.Equal(t, firstErr == nil, secondErr == nil)
		after, err := unstructured.Encode(&unstructured.Object{Object: data})
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after))
	})
}
