package unstructured

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	sigsjson "sigs.k8s.io/json"
)

type (
	base struct {
		Deep   string `json:"deep"`
		Hidden string `json:"hidden"`
		Both   string
	}
	second struct {
		Both string
		More string
	}
	level  string
	shouts string
	gadget struct {
		base
		second
		Hidden    int                            `json:"hidden"`
		String    string                         `json:"string"`
		Level     level                          `json:"level"`
		Shouts    shouts                         `json:"shouts"`
		Bool      bool                           `json:"bool"`
		Int       int                            `json:"int"`
		Int8      int8                           `json:"int8"`
		Uint16    uint16                         `json:"uint16"`
		Float32   float32                        `json:"float32"`
		Float64   float64                        `json:"float64"`
		Bytes     []byte                         `json:"bytes"`
		Any       any                            `json:"any"`
		Error     error                          `json:"error"`
		List      []int64                        `json:"list"`
		Lists     [][]string                     `json:"lists"`
		Array     [2]int                         `json:"array"`
		Map       map[string]int                 `json:"map"`
		Levels    map[level]*bool                `json:"levels"`
		ByNumber  map[int]int                    `json:"byNumber"`
		Quoted    int                            `json:"quoted,string"`
		Pointer   **int                          `json:"pointer"`
		Next      *gadget                        `json:"next"`
		Nexts     []gadget                       `json:"nexts"`
		Time      metav1.Time                    `json:"time"`
		TimeToo   *metav1.Time                   `json:"timeToo"`
		Micro     *metav1.MicroTime              `json:"micro"`
		Duration  metav1.Duration                `json:"duration"`
		Std       time.Time                      `json:"std"`
		Number    json.Number                    `json:"number"`
		Numbers   map[string]*json.Number        `json:"numbers"`
		Quantity  resource.Quantity              `json:"quantity"`
		Port      intstr.IntOrString             `json:"port"`
		Raw       runtime.RawExtension           `json:"raw"`
		Resources map[string]resource.Quantity   `json:"resources"`
		Fields    *metav1.FieldsV1               `json:"fields"`
		Meta      metav1.ObjectMeta              `json:"meta"`
		Labels    map[string]map[string][]string `json:"labels"`
		Ignored   string                         `json:"-"`
		Plain     string
	}
)

func (s *shouts) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return fmt.Errorf("silence")
	}
	*s = shouts(strings.ToUpper(string(text)))
	return nil
}

// valuesForFields are put into every field of a gadget.
func valuesForFields() []any {
	return []any{
		nil, "", "a", "\xff", "AQI=", "AQI", "true", "5", "-1", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "1h", "100m", true, false, int64(0), int64(1), int64(-1), int64(127), int64(128), int64(-129),
		int64(65536), int64(math.MaxInt64), int64(1)<<53 + 1, int64(16777217), 0.5, 0.1, 1.0, -1.0, math.Copysign(0, -1), 1e19, 1e300, math.Inf(1), math.NaN(), 9223372036854775808.0,
		[]any{}, []any(nil), []any{nil}, []any{int64(1), int64(2)}, []any{int64(1), int64(2), int64(3)}, []any{"a", nil}, []any{[]any{"a"}, []any{}, nil}, []any{map[string]any{"int": int64(1)}, nil},
		map[string]any{}, map[string]any(nil), map[string]any{"a": nil}, map[string]any{"a": int64(1), "b": int64(2)}, map[string]any{"a": true}, map[string]any{"5": int64(1)}, map[string]any{"a": "1Gi"}, map[string]any{"a\xff": int64(1)},
		map[string]any{"int": int64(1), "next": map[string]any{"string": "x"}}, map[string]any{"a": map[string]any{"b": []any{"c"}}}, map[string]any{"a": 1.0}, map[string]any{"a": 1.5, "b": []any{int64(1), "x\xfe", nil, 2.5}},
		map[string]any{"name": "a", "labels": map[string]any{"b": "c"}, "creationTimestamp": nil, "generation": int64(3)}, map[string]any{"INT": int64(1), "Int": int64(2)},
		1, uint8(3), []string{"a"}, map[string]string{"a": "b"}, map[string]int{"a": 1}, float32(0.5), level("x"), make(chan int), metav1.Now().Rfc3339Copy(),
	}
}

// assertReadsAsJSON compares As with the JSON reader, and reports whether JSON could be avoided.
func assertReadsAsJSON[T any](t testing.TB, obj *Object) (isDirect bool) {
	t.Helper()
	want := new(T)
	data, wantErr := Encode(obj)
	if wantErr == nil {
		wantErr = sigsjson.UnmarshalCaseSensitivePreserveInts(data, want)
	}
	got, err := As[T](obj)
	if wantErr != nil {
		if !strings.Contains(wantErr.Error(), "cannot encode") {
			assert.Error(t, err, "%s: the JSON reader: %v", data, wantErr)
		}
		return false
	}
	if assert.NoError(t, err, "%s", data) {
		assert.True(t, reflect.DeepEqual(want, got), "%s: want %#v, got %#v", data, want, got)
	}
	return planOf(reflect.TypeFor[T]()).store(obj.Object, reflect.ValueOf(new(T)).Elem(), 0)
}

func TestAs_DirectConversionEqualsJSON(t *testing.T) {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[gadget]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name, field.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	direct := 0
	for _, name := range names {
		for _, v := range valuesForFields() {
			for _, obj := range []map[string]any{{name: v}, {"next": map[string]any{name: v}}, {"nexts": []any{map[string]any{name: v}}}} {
				if assertReadsAsJSON[gadget](t, &Object{Object: obj}) {
					direct++
				}
			}
			assertReadsAsJSON[widget](t, &Object{Object: map[string]any{"spec": map[string]any{name: v}}})
		}
	}
	assert.Greater(t, direct, 1000, "JSON is always used")
	for _, data := range samples(t) {
		obj, err := Decode(data)
		require.NoError(t, err)
		assert.True(t, assertReadsAsJSON[somePod](t, obj) || obj.GetKind() != "Pod")
		assertReadsAsJSON[map[string]any](t, obj)
		assertReadsAsJSON[metav1.PartialObjectMetadata](t, obj)
		assertReadsAsJSON[metav1.PartialObjectMetadataList](t, obj)
	}
}

func FuzzAs(f *testing.F) {
	addDocuments(f)
	f.Add([]byte(wholeWidget))
	f.Add([]byte(`{"kind":"A","spec":{},"next":{"int8":1,"labels":{"a":{"b":["c"]}}},"any":[1.5],"time":null,"levels":{"a":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := Decode(data)
		if err != nil {
			return
		}
		assertReadsAsJSON[gadget](t, obj)
		assertReadsAsJSON[widget](t, obj)
		assertReadsAsJSON[somePod](t, obj)
		assertReadsAsJSON[map[string]any](t, obj)
	})
}

func TestAs_CyclicObject(t *testing.T) {
	m := map[string]any{"kind": "A"}
	m["next"] = m
	_, err := As[gadget](&Object{Object: m})
	assert.ErrorContains(t, err, "nested deeper than 10000")
	m = map[string]any{"kind": "A"}
	m["any"] = m
	_, err = As[gadget](&Object{Object: m})
	assert.ErrorContains(t, err, "nested deeper than 10000")
}

// What As does otherwise is why it is not that converter.
func TestApimachineryConverter_Faults(t *testing.T) {
	obj := map[string]any{"int8": int64(300), "any": map[string]any{"a": "b"}}
	var got struct {
		Int8 int8           `json:"int8"`
		Any  map[string]any `json:"any"`
	}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"int8": int64(300)}, &got))
	assert.Equal(t, int8(44), got.Int8)
	_, err := As[gadget](&Object{Object: obj})
	assert.EqualError(t, err, ".int8: 300 does not fit into int8")
	assert.Panics(t, func() {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(obj, new(struct{ note string }))
	})
}

// words appends what it reads.
type words []string

func (w *words) UnmarshalText(text []byte) error {
	*w = append(*w, string(text))
	return nil
}

// TestAs_UnmarshalsOnce has an object that can be converted directly only in part.
func TestAs_UnmarshalsOnce(t *testing.T) {
	type page struct {
		Words words `json:"words"`
		Count int   `json:"count"`
	}
	type book struct {
		Pages []page `json:"pages"`
	}
	got, err := As[book](&Object{Object: map[string]any{"pages": []any{map[string]any{"words": "a"}, map[string]any{"count": 1.0}}}})
	require.NoError(t, err)
	assert.Equal(t, []page{{Words: words{"a"}}, {Count: 1}}, got.Pages)
}
