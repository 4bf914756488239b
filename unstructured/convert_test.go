package unstructured

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              widgetSpec `json:"spec"`
	note              string     // not JSON's
}

type widgetSpec struct {
	Replicas  int32                `json:"replicas,omitempty"`
	Small     uint8                `json:"small,omitempty"`
	Scale     float64              `json:"scale,omitempty"`
	Text      string               `json:"text,omitempty"`
	Bytes     []byte               `json:"bytes,omitempty"`
	Since     *metav1.Time         `json:"since,omitempty"`
	EndTime   metav1.Time          `json:"endTime,omitzero"`
	Memory    resource.Quantity    `json:"memory,omitzero"`
	Port      *intstr.IntOrString  `json:"port,omitempty"`
	Raw       runtime.RawExtension `json:"raw,omitzero"`
	Any       any                  `json:"any,omitempty"`
	Sizes     []int32              `json:"sizes,omitempty"`
	Pair      [2]int               `json:"pair,omitzero"`
	Items     []widgetPart         `json:"items,omitempty"`
	ByName    map[string]*int64    `json:"byName,omitempty"`
	ByNumber  map[int]string       `json:"byNumber,omitempty"`
	Quoted    int64                `json:"quoted,omitempty,string"`
	Untagged  bool
	Left      string `json:"-"`
	*Optional `json:",omitempty"`
}

type widgetPart struct {
	Port intstr.IntOrString `json:"port,omitzero"`
	Name string             `json:"name,omitempty"`
}

type Optional struct {
	Extra string `json:"extra,omitempty"`
}

const wholeWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"app":"web"},"creationTimestamp":"2026-01-02T03:04:05Z"},` +
	`"spec":{"replicas":3,"small":255,"scale":1.5,"text":"é","bytes":"AQI=","since":"2026-01-02T03:04:05Z","memory":"128Mi","port":"http","raw":{"kind":"Foo","n":1},` +
	`"any":{"big":9007199254740993,"half":0.5},"sizes":[1,2],"pair":[1,2],"items":[{"port":80},{"name":"b"}],"byName":{"x":7},"byNumber":{"8":"y"},"quoted":"5","Untagged":true,"extra":"e"}}`

func decoded(t testing.TB, text string) *Object {
	t.Helper()
	obj, err := Decode([]byte(text))
	require.NoError(t, err)
	return obj
}

func TestAs_RoundTrip(t *testing.T) {
	obj := decoded(t, wholeWidget)
	w, err := As[widget](obj)
	require.NoError(t, err)
	assert.Equal(t, metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}, w.TypeMeta)
	assert.Equal(t, map[string]string{"app": "web"}, w.Labels)
	assert.True(t, w.CreationTimestamp.Equal(&metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}))
	assert.Equal(t, int32(3), w.Spec.Replicas)
	assert.Equal(t, []byte{1, 2}, w.Spec.Bytes)
	assert.Equal(t, int64(128<<20), w.Spec.Memory.Value())
	assert.Equal(t, intstr.FromString("http"), *w.Spec.Port)
	assert.JSONEq(t, `{"kind":"Foo","n":1}`, string(w.Spec.Raw.Raw))
	assert.Equal(t, map[string]any{"big": int64(9007199254740993), "half": 0.5}, w.Spec.Any)
	assert.Equal(t, [2]int{1, 2}, w.Spec.Pair)
	assert.Equal(t, int64(5), w.Spec.Quoted)
	assert.Equal(t, "e", w.Spec.Extra)
	assert.Empty(t, w.note)

	back, err := From(w)
	require.NoError(t, err)
	assertIdentical(t, obj.Object, back.Object)
	byValue, err := From(*w)
	require.NoError(t, err)
	assertIdentical(t, obj.Object, byValue.Object)
}

func TestAs_FieldsAreCaseSensitive(t *testing.T) {
	w, err := As[widget](decoded(t, `{"kind":"Widget","Spec":{"replicas":1},"spec":{"Replicas":2,"untagged":true,"unknown":[]}}`))
	require.NoError(t, err)
	assert.Equal(t, widget{TypeMeta: metav1.TypeMeta{Kind: "Widget"}}, *w)
}

func TestAs_SharesNoMemory(t *testing.T) {
	obj := decoded(t, wholeWidget)
	w, err := As[widget](obj)
	require.NoError(t, err)
	w.Labels["app"] = "changed"
	w.Spec.Any.(map[string]any)["big"] = "changed"
	assert.Equal(t, decoded(t, wholeWidget), obj)
	back, err := From(w)
	require.NoError(t, err)
	w.Labels["app"] = "again"
	w.Spec.Any.(map[string]any)["big"] = "again"
	assert.Equal(t, "changed", back.GetLabels()["app"])
	assert.Equal(t, "changed", back.Object["spec"].(map[string]any)["any"].(map[string]any)["big"])
}

func TestAs_LazyEqualsObject(t *testing.T) {
	want, err := As[widget](decoded(t, wholeWidget))
	require.NoError(t, err)
	got, err := As[widget](lazy(t, wholeWidget))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	back, err := From(got)
	require.NoError(t, err)
	assertIdentical(t, decoded(t, wholeWidget).Object, back.Object)
}

func lazy(t testing.TB, text string) *Lazy {
	t.Helper()
	l, err := DecodeLazy([]byte(text))
	require.NoError(t, err)
	return l
}

func TestAs_LazyAndObject(t *testing.T) {
	l := lazy(t, wholeWidget)
	same, err := As[Lazy](l)
	require.NoError(t, err)
	assert.Same(t, l, same)
	obj, err := As[Object](l)
	require.NoError(t, err)
	assertIdentical(t, decoded(t, wholeWidget).Object, obj.Object)
	again, err := As[Lazy](obj)
	require.NoError(t, err)
	assertLazyIs(t, obj, again)

	items := NewListDecoder(strings.NewReader(`{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"v1","a":1}]}`))
	bare, err := items.NextLazy()
	require.NoError(t, err)
	obj, err = As[Object](bare)
	require.NoError(t, err, "a list's item may lack a kind")
	again, err = As[Lazy](obj)
	require.NoError(t, err)
	assert.JSONEq(t, string(bare.JSON()), string(again.JSON()))
}

func TestAs_OnePointZeroIsNoInteger(t *testing.T) {
	const text = `{"kind":"Widget","spec":{"replicas":1.0}}`
	_, err := As[widget](lazy(t, text))
	assert.EqualError(t, err, ".spec.replicas: is number 1.0, not int32")
	w, err := As[widget](decoded(t, text))
	require.NoError(t, err)
	assert.Equal(t, int32(1), w.Spec.Replicas)
}

func TestAs_SameType(t *testing.T) {
	obj := decoded(t, wholeWidget)
	same, err := As[Object](obj)
	require.NoError(t, err)
	assert.Same(t, obj, same)
	m, err := As[map[string]any](obj)
	require.NoError(t, err)
	assertIdentical(t, obj.Object, *m)
}

func TestAs_MismatchNamesPathAndTypes(t *testing.T) {
	for spec, want := range map[string]string{
		`{"replicas":"3"}`:                        ".spec.replicas: is string, not int32",
		`{"replicas":1.5}`:                        ".spec.replicas: is float64, not int32",
		`{"replicas":5000000000}`:                 ".spec.replicas: 5000000000 does not fit into int32",
		`{"small":-1}`:                            ".spec.small: -1 does not fit into uint8",
		`{"replicas":true}`:                       ".spec.replicas: is bool, not int32",
		`{"text":7}`:                              ".spec.text: is int64, not string",
		`{"text":["a"]}`:                          ".spec.text: is []any, not string",
		`{"sizes":[1,2,"x"]}`:                     ".spec.sizes[2]: is string, not int32",
		`{"sizes":{}}`:                            ".spec.sizes: is map[string]any, not []int32",
		`{"pair":[1,"x"]}`:                        ".spec.pair[1]: is string, not int",
		`{"items":[{},{"name":1}]}`:               ".spec.items[1].name: is int64, not string",
		`{"items":[{},{"port":true}]}`:            ".spec.items[1].port: ",
		`{"byName":{"a":1,"b.c":"x"}}`:            `.spec.byName["b.c"]: is string, not int64`,
		`{"byNumber":{"x":"y"}}`:                  ".spec.byNumber.x: ",
		`{"bytes":"?"}`:                           ".spec.bytes: illegal base64 data at input byte 0",
		`{"since":"yesterday"}`:                   ".spec.since: parsing time ",
		`{"memory":"lots"}`:                       ".spec.memory: quantities must match",
		`{"extra":1}`:                             ".spec.extra: is int64, not string",
		`{"quoted":"x"}`:                          ".spec.quoted: ",
		`[]`:                                      ".spec: is []any, not unstructured.widgetSpec",
		`{"items":[{"name":"a"},3],"replicas":1}`: ".spec.items[1]: is int64, not unstructured.widgetPart",
	} {
		t.Run(spec, func(t *testing.T) {
			w, err := As[widget](decoded(t, `{"kind":"Widget","spec":`+spec+`}`))
			require.Error(t, err)
			assert.True(t, strings.HasPrefix(err.Error(), want), err.Error())
			assert.Nil(t, w)
			assert.Error(t, errors.Unwrap(err))
			_, lazyErr := As[widget](lazy(t, `{"kind":"Widget","spec":`+spec+`}`))
			assert.Equal(t, err.Error(), fmt.Sprint(lazyErr))
		})
	}
	_, err := As[widget](decoded(t, `{"kind":"Widget","metadata":{"labels":{"a":1}}}`))
	assert.EqualError(t, err, ".metadata.labels.a: is int64, not string")
	_, err = As[struct{ IP netip.Addr }](decoded(t, `{"kind":"Widget","IP":{"a":1}}`))
	assert.EqualError(t, err, ".IP: is map[string]any, not *netip.Addr")
	_, err = As[[]string](decoded(t, `{"kind":"Widget"}`))
	assert.EqualError(t, err, ".: is map[string]any, not []string")
	var mismatch *json.UnmarshalTypeError
	assert.ErrorAs(t, err, &mismatch)
}

// A type that holds itself could be looked through for ever.
type chain struct {
	Next *chain `json:"next"`
	N    int    `json:"n"`
}

func TestAs_DeepMismatchInBoundedTime(t *testing.T) {
	deep := strings.Repeat(`{"next":`, 1000) + `{"n":"x"}` + strings.Repeat("}", 1000)
	_, err := As[chain](decoded(t, `{"kind":"A","next":`+deep+`}`))
	assert.ErrorContains(t, err, ".next.next.next")
}

func TestAs_NilObject(t *testing.T) {
	_, err := As[widget]((*Object)(nil))
	assert.EqualError(t, err, "cannot read a nil object as unstructured.widget")
	for _, none := range []*Lazy{nil, {}} {
		_, err = As[Lazy](none)
		assert.EqualError(t, err, "cannot read a nil object as unstructured.Lazy")
		_, err = From(none)
		assert.EqualError(t, err, "cannot convert a nil object")
	}
	_, err = As[Object](&Object{})
	assert.EqualError(t, err, "cannot read a nil object as unstructured.Unstructured")
	_, err = As[widget](&Object{Object: map[string]any{"spec": map[string]any{"text": make(chan int)}}})
	assert.EqualError(t, err, ".spec.text: cannot encode chan int")
}

func TestFrom_JSONObjects(t *testing.T) {
	for name, v := range map[string]any{
		"lazy": lazy(t, wholeWidget), "map": map[string]any{"kind": "A", "n": 1}, "typed map": map[string]int{"n": 1}, "struct": struct{ N int }{1}, "object": decoded(t, wholeWidget),
		"raw": json.RawMessage(`{"kind":"A"}`), "ObjectMeta alone": metav1.ObjectMeta{Name: "a"}, "empty map": map[string]string{}, "no kind": &widget{},
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := From(v)
			require.NoError(t, err)
			data, err := json.Marshal(v)
			require.NoError(t, err)
			want, err := decodeValue(data)
			require.NoError(t, err)
			assertIdentical(t, want, obj.Object)
			assert.NotPanics(t, func() { obj.DeepCopy() })
		})
	}
	for _, v := range []any{*decoded(t, wholeWidget), *lazy(t, wholeWidget)} {
		obj, err := From(v)
		require.NoError(t, err)
		assertIdentical(t, decoded(t, wholeWidget).Object, obj.Object)
	}
	obj := decoded(t, wholeWidget)
	same, err := From(obj)
	require.NoError(t, err)
	same.SetName("changed")
	assert.Equal(t, "a", obj.GetName(), "memory is shared")
}

func TestFrom_RejectsOtherValues(t *testing.T) {
	for want, v := range map[string]any{
		"cannot convert []int: in JSON it is []any, not an object":                  []int{1},
		"cannot convert string: in JSON it is string, not an object":                "a",
		"cannot convert bool: in JSON it is bool, not an object":                    true,
		"cannot convert float64: in JSON it is float64, not an object":              1.5,
		"cannot convert <nil>: in JSON it is null, not an object":                   nil,
		"cannot convert *unstructured.widget: in JSON it is null, not an object":    (*widget)(nil),
		"cannot convert map[string]interface {}: in JSON it is null, not an object": map[string]any(nil),
		"cannot convert a nil object":                                               (*Object)(nil),
		"cannot convert v1.Time: in JSON it is string, not an object":               metav1.Unix(0, 0),
		".a[1]: cannot encode func()":                                               map[string]any{"a": []any{1, func() {}}},
		".a: cannot encode NaN":                                                     map[string]any{"a": math.NaN()},
	} {
		t.Run(want, func(t *testing.T) {
			obj, err := From(v)
			assert.EqualError(t, err, want)
			assert.Nil(t, obj)
		})
	}
}
