package cache

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/testing/jsoncases"
)

// stateOf returns a state of an object, decoded for itself.
func stateOf(t *testing.T, name, fields string) *unstructuredv1.Unstructured {
	t.Helper()
	obj := &unstructuredv1.Unstructured{}
	text := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":%q,"labels":{"app":"web"}},%s}`, name, fields)
	require.NoError(t, utiljson.Unmarshal([]byte(text), &obj.Object))
	return obj
}

// address returns where a field's map or list is in memory.
func address(t *testing.T, obj *unstructuredv1.Unstructured, fields ...string) uintptr {
	t.Helper()
	v, found, err := unstructuredv1.NestedFieldNoCopy(obj.Object, fields...)
	require.NoError(t, err)
	require.True(t, found, "%v", fields)
	return reflect.ValueOf(v).Pointer()
}

func TestInterner_SharesWhatCameTwice(t *testing.T) {
	in := newInterner()
	var all []*unstructuredv1.Unstructured
	for i := range 5 {
		all = append(all, in.object(stateOf(t, fmt.Sprint("thing-", i), `"spec":{"containers":[{"image":"web:1","ports":[{"port":80}]}]}`), nil))
	}
	for _, fields := range [][]string{{"metadata", "labels"}, {"spec"}} {
		assert.NotEqual(t, address(t, all[0], fields...), address(t, all[1], fields...), "it is not known yet that it comes again")
		for _, obj := range all[2:] {
			assert.Equal(t, address(t, all[1], fields...), address(t, obj, fields...))
		}
	}
	assert.NotEqual(t, address(t, all[1], "metadata"), address(t, all[2], "metadata"))
}

func TestInterner_SharesWithPreviousState(t *testing.T) {
	in := newInterner()
	first := in.object(stateOf(t, "a", `"spec":{"a":[1,{"b":null}]},"status":{"ready":true,"list":[{"a":1},{"b":1}]}`), nil)
	second := in.object(stateOf(t, "a", `"spec":{"a":[1,{"b":null}]},"status":{"ready":true,"list":[{"a":1},{"b":2}]}`), first)
	assert.Equal(t, address(t, first, "spec"), address(t, second, "spec"))
	assert.Equal(t, address(t, first, "metadata"), address(t, second, "metadata"))
	assert.NotEqual(t, address(t, first, "status"), address(t, second, "status"))
	one, _, _ := unstructuredv1.NestedFieldNoCopy(first.Object, "status", "list")
	two, _, _ := unstructuredv1.NestedFieldNoCopy(second.Object, "status", "list")
	assert.True(t, isSame(one.([]any)[0], two.([]any)[0]))
	assert.Equal(t, map[string]any{"b": int64(1)}, one.([]any)[1])
	assert.Equal(t, map[string]any{"b": int64(2)}, two.([]any)[1])

	third := in.object(stateOf(t, "a", `"spec":{"a":[1,{"b":null}]},"status":{"ready":true,"list":[{"a":1},{"b":2}]}`), second)
	assert.True(t, isSame(second.Object, third.Object))
}

// TestInterner_SimilarValues has values that are easily taken for each other, some of which only a Transform can make.
func TestInterner_SimilarValues(t *testing.T) {
	pairs := map[string][2]any{
		"zeros that differ by sign":      {0.0, math.Copysign(0, -1)},
		"a whole number and a fraction":  {int64(1), 1.0},
		"a number and its text":          {int64(1), "1"},
		"a number and its bits":          {int64(math.MaxInt64), math.Float64frombits(math.MaxInt64)},
		"false and null":                 {false, nil},
		"nothing, in all its forms":      {map[string]any{}, []any{}},
		"no map and an empty one":        {map[string]any(nil), map[string]any{}},
		"no list and an empty one":       {[]any(nil), []any{}},
		"a null of another name":         {map[string]any{"a": nil}, map[string]any{"b": nil}},
		"no null":                        {map[string]any{"a": nil}, map[string]any{}},
		"an element less":                {[]any{"a", "b"}, []any{"a"}},
		"another order":                  {[]any{"a", "b"}, []any{"b", "a"}},
		"values that are exchanged":      {map[string]any{"a": "1", "b": "2"}, map[string]any{"a": "2", "b": "1"}},
		"integers of another type":       {int64(1), 1},
		"a number that is not parsed":    {json.Number("1"), json.Number("2")},
		"lists that cannot be compared":  {[]string{"a"}, []string{"b"}},
		"maps that cannot be compared":   {map[string]string{"a": "b"}, map[string]string{"a": "c"}},
		"structs that cannot be read in": {struct{ a []int }{[]int{1}}, struct{ a []int }{[]int{2}}},
	}
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			in := newInterner()
			var previous *unstructuredv1.Unstructured
			for i := range 8 {
				with := func() map[string]any {
					return map[string]any{"value": pair[i%2], "in": map[string]any{"a": []any{pair[i%2]}, "b": "c"}}
				}
				previous = in.object(&unstructuredv1.Unstructured{Object: with()}, previous)
				assert.Equal(t, fmt.Sprintf("%#v", with()), fmt.Sprintf("%#v", previous.Object))
			}
		})
	}
	assert.Equal(t, &unstructuredv1.Unstructured{}, newInterner().object(&unstructuredv1.Unstructured{}, nil))
}

func TestInterner_ComparesValuesWithEqualHashes(t *testing.T) {
	in := newInterner()
	obj := stateOf(t, "a", `"spec":{"a":1}`)
	in.recent[in.digestValue(node{value: obj.Object["spec"]}).hash] = map[string]any{"a": int64(2)}
	in.nodes = nil
	assert.Equal(t, obj.DeepCopy(), in.object(obj, nil))
}

func TestInterner_IsBounded(t *testing.T) {
	in := newInterner()
	intern := func(text string) {
		in.object(&unstructuredv1.Unstructured{Object: map[string]any{"text": []any{text}}}, nil)
	}
	const length = 1 << 10
	for i := range 3 * maxGenerationSize / length {
		for range 2 {
			intern(fmt.Sprintf("%0*d", length, i))
		}
	}
	assert.LessOrEqual(t, in.size, maxGenerationSize+4*length)
	assert.Less(t, len(in.recent)+len(in.older), 4*maxGenerationSize/length)
	assert.NotEmpty(t, in.older)

	mine := in.digestValue(node{value: []any{"mine"}}).hash
	in.nodes = in.nodes[:0]
	intern("mine")
	intern("mine")
	assert.Contains(t, in.recent, mine)
	for range 3 * maxLookups {
		intern("other")
	}
	assert.NotContains(t, in.recent, mine)
	assert.NotContains(t, in.older, mine, "what does not come any more is forgotten")

	for range 3 {
		intern(strings.Repeat("x", maxInternedSize))
	}
	for _, v := range in.recent {
		assert.Less(t, len(fmt.Sprint(v)), maxInternedSize)
	}
	in.object(&unstructuredv1.Unstructured{Object: map[string]any{"list": slicesOf(2 * maxNodesKept)}}, nil)
	assert.Empty(t, in.nodes)
	assert.LessOrEqual(t, cap(in.nodes), maxNodesKept)
}

// slicesOf returns a list of lists.
func slicesOf(count int) (list []any) {
	for range count {
		list = append(list, []any{})
	}
	return list
}

// FuzzInterner interns two states of several objects in turn. What it gets and what it has returned stay as they were.
func FuzzInterner(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c"}],"d":{"e":null}}`), []byte(`{"a":[1,{"b":"d"}],"d":{"e":null},"f":-0.0}`))
	for _, value := range jsoncases.Values {
		if len(value) < 1000 {
			f.Add([]byte(value), []byte(`{"a":[[],{},{"b":`+value+`},{"b":`+value+`}]}`))
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		states := [2]map[string]any{}
		for i, data := range [][]byte{before, after} {
			var v any
			if utiljson.Unmarshal(data, &v) != nil {
				return
			}
			states[i] = map[string]any{"spec": v, "metadata": map[string]any{"labels": map[string]any{"app": "web"}}}
		}
		printed := func(obj *unstructuredv1.Unstructured) string { return fmt.Sprintf("%#v", obj.Object) }
		in := newInterner()
		previous := map[int]*unstructuredv1.Unstructured{}
		var held []*unstructuredv1.Unstructured
		var want []string
		for i := range 12 {
			obj := (&unstructuredv1.Unstructured{Object: states[i%2]}).DeepCopy()
			original := obj.DeepCopy()
			previous[i%3] = in.object(obj, previous[i%3])
			assert.Equal(t, printed(original), printed(obj), "it is written to")
			held = append(held, previous[i%3])
			want = append(want, printed(original))
		}
		for i, obj := range held {
			assert.Equal(t, want[i], printed(obj))
		}
	})
}

// TestInterner_CopyIsNoLarger has maps of eight members, the most that a map of Go has without a table, of which one is shared.
func TestInterner_CopyIsNoLarger(t *testing.T) {
	const count = 1000
	liveBytes := func(build func() any) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		held := build()
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(held)
		return after.HeapAlloc - before.HeapAlloc
	}
	object := func(labels map[string]any) *unstructuredv1.Unstructured {
		fields := map[string]any{"labels": labels}
		for i := range 7 {
			fields[strconv.Itoa(i)] = true
		}
		return &unstructuredv1.Unstructured{Object: fields}
	}
	newLabels := func() map[string]any { return map[string]any{"app": "web"} }
	want := liveBytes(func() any {
		var all []*unstructuredv1.Unstructured
		labels := newLabels()
		for range count {
			all = append(all, object(labels))
		}
		return all
	})
	got := liveBytes(func() any {
		var all []*unstructuredv1.Unstructured
		in := newInterner()
		for i := range count {
			obj := object(newLabels())
			obj.Object["0"] = int64(i) // not shared as a whole
			all = append(all, in.object(obj, nil))
		}
		return all
	})
	assert.Less(t, float64(got), 1.3*float64(want))
}
