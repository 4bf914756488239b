package unstructured

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type (
	phase    string
	flag     bool
	ratio    float64
	byRefToo string
	byValue  struct{ n int }
	byRef    struct{ n int }
	asText   struct{ s string }
	keyText  string
	inFields struct {
		B byRef `json:"b"`
		A int   `json:"a,omitempty"`
		Z *int  `json:"z"`
	}
)

func (v byValue) MarshalJSON() ([]byte, error)   { return json.Marshal(v.n) }
func (v *byRef) MarshalJSON() ([]byte, error)    { return json.Marshal(map[string]int{"z": v.n, "a": 1}) }
func (v *byRefToo) MarshalJSON() ([]byte, error) { return json.Marshal("by reference: " + string(*v)) }
func (v asText) MarshalText() ([]byte, error)    { return []byte(v.s), nil }
func (k keyText) MarshalText() ([]byte, error)   { return []byte("key " + k), nil }

var foreignValues = map[string]any{
	"int": 1, "int8": int8(-1), "int16": int16(1), "int32": int32(1), "uint": uint(1), "uint8": uint8(255), "uint16": uint16(1), "uint32": uint32(math.MaxUint32),
	"uint64": uint64(math.MaxInt64), "uintptr": uintptr(1), "float32": float32(0.5), "whole float32": float32(3), "inexact float32": float32(0.1), "named string": phase("Running"),
	"named bad string": phase("a\xff"), "named bool": flag(true), "named float": ratio(0.5), "strings by reference": []byRefToo{"a"}, "string by value": byRefToo("a"), "map by reference": map[string]byRefToo{"a": "b"},
	"UID": types.UID("x"), "pointers to numbers": []*int{nil, new(int)}, "lists of lists": [][]byRef{{{1}}, nil}, "json.Number": json.Number("1.5"),
	"duration": time.Second, "metav1.Duration": metav1.Duration{Duration: time.Second}, "time": time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC), "metav1.Time": metav1.Unix(0, 0).Rfc3339Copy(),
	"zero metav1.Time": metav1.Time{}, "quantity": resource.MustParse("100m"), "int or string": intstr.FromInt32(8080), "string of them": intstr.FromString("http"),
	"strings": []string{"b", "a<"}, "no strings": []string{}, "nil strings": []string(nil), "ints": []int{1, 2}, "array": [2]bool{true, false}, "bytes": []byte("bytes"), "no bytes": []byte{}, "nil bytes": []byte(nil), "byte array": [2]byte{1, 2},
	"string map": map[string]string{"b": "1", "a": "2"}, "nil map": map[string]string(nil), "named keys": map[phase]int{"b": 1, "a": 2}, "int keys": map[int]string{2: "b", 10: "a"}, "text keys": map[keyText]int{"a": 1},
	"nested": map[string][]map[string]int{"a": {{"c": 1, "b": 2}, nil}}, "maps of any": []map[string]any{{"b": 1, "a": []int{}}},
	"struct": metav1.OwnerReference{Kind: "A", Name: "<a>"}, "pointer to struct": &metav1.LabelSelector{MatchLabels: map[string]string{"b": "", "a": ""}}, "nil pointer": (*metav1.Status)(nil), "nil pointer that marshals": (*byRef)(nil),
	"pointer to pointer": new(*string), "pointer to map": &map[string]any{"a": 1}, "pointer to array": &[1]byRef{{2}}, "pointer to slice": &[]byRef{{2}}, "pointer to number": new(int),
	"marshals a number": byValue{5}, "marshals by reference": &byRef{5}, "cannot by reference": byRef{5}, "many by value": []byValue{{1}, {2}}, "many by reference": []byRef{{1}, {2}}, "pointers": []*byRef{{1}, nil},
	"fields by reference": &inFields{B: byRef{1}}, "fields by value": inFields{B: byRef{1}}, "slice of such": []inFields{{B: byRef{1}}}, "pointer to such a pointer": func() any { p := &inFields{}; return &p }(),
	"text": asText{"<a>"}, "text by reference": &asText{"b"}, "raw": json.RawMessage(`{"b":1,"a":[1.0, 2]}`), "raw number": json.RawMessage(`7`), "nil raw": json.RawMessage(nil),
	"nil interfaces": []error{nil}, "object": &Object{Object: map[string]any{"kind": "A"}}, "HTML in a struct": struct{ A string }{"<&>"}, "line separator": struct{ A string }{"\u2028"},
	"large in a struct": struct{ A int64 }{math.MaxInt64}, "embedded": struct{ metav1.TypeMeta }{metav1.TypeMeta{Kind: "A"}}, "embedded nil": struct{ *metav1.TypeMeta }{},
}

func TestEncode_GoValuesAsEncodingJSON(t *testing.T) {
	for name, v := range foreignValues {
		t.Run(name, func(t *testing.T) {
			obj := &Object{Object: map[string]any{"kind": "A", "v": v}}
			data, err := Encode(obj)
			require.NoError(t, err)
			assertEncodesAsStandard(t, obj, data)
			inList := &Object{Object: map[string]any{"kind": "A", "v": []any{v, v}}}
			data, err = Encode(inList)
			require.NoError(t, err)
			assertEncodesAsStandard(t, inList, data)
		})
	}
}

func TestEncode_GoValuesWithoutHTMLEscapes(t *testing.T) {
	for _, v := range []any{phase("<&>"), []string{"<&>"}, map[string]string{"a": "<&>"}, struct{ A string }{"<&>"}, asText{"<&>"}, map[phase]int{"<&>": 1}} {
		assert.Contains(t, encoded(t, v), "<&>")
	}
}

type failingMarshaler struct{}

var errFailing = errors.New("will not")

func (failingMarshaler) MarshalJSON() ([]byte, error) { return nil, errFailing }

func TestEncode_WrapsMarshalerError(t *testing.T) {
	_, err := Encode(&Object{Object: map[string]any{"a": map[string]failingMarshaler{"b": {}}}})
	assert.ErrorIs(t, err, errFailing)
	assert.True(t, strings.HasPrefix(err.Error(), ".a.b: cannot encode unstructured.failingMarshaler: "), err.Error())
}

// What the errors below are about is accepted by encoding/json, and by no Kubernetes server.
func TestEncode_ChecksMarshaledText(t *testing.T) {
	for want, v := range map[string]any{
		`"1e999" is too large a number`: json.RawMessage("1e999"),
		"nested deeper than 10000":      json.RawMessage(nested(10000)),
	} {
		obj := &Object{Object: map[string]any{"v": v}}
		_, err := Encode(obj)
		assert.ErrorContains(t, err, want)
		assert.NoError(t, json.NewEncoder(&bytes.Buffer{}).Encode(obj.Object))
	}
}
