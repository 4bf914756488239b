package unstructured

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSet_Paths(t *testing.T) {
	for name, c := range map[string]struct {
		before, path string
		value        any
		want         string
	}{
		"a field":                     {`{"a":1}`, "b", "x", `{"a":1,"b":"x"}`},
		"in place of another type":    {`{"a":[1]}`, "a", true, `{"a":true}`},
		"missing maps":                {`{}`, "a.b.c", 1, `{"a":{"b":{"c":1}}}`},
		"null on the way":             {`{"a":null}`, "a.b", 1, `{"a":{"b":1}}`},
		"null":                        {`{"a":1}`, "a", nil, `{"a":null}`},
		"an element":                  {`{"a":[1,2]}`, "a[1]", "x", `{"a":[1,"x"]}`},
		"below an element":            {`{"a":[{"b":1},2]}`, "a[0].c", "x", `{"a":[{"b":1,"c":"x"},2]}`},
		"below a null element":        {`{"a":[null]}`, "a[0].c", "x", `{"a":[{"c":"x"}]}`},
		"behind the last element":     {`{"a":[1]}`, "a[1]", 2, `{"a":[1,2]}`},
		"first of an empty list":      {`{"a":[]}`, "a[0].b", 2, `{"a":[{"b":2}]}`},
		"list in a list":              {`{"a":[[1]]}`, "a[0][1]", 2, `{"a":[[1,2]]}`},
		"digits for a name":           {`{"a":{}}`, "a.0", 2, `{"a":{"0":2}}`},
		"by key":                      {`{"a":[{"n":"x"},{"n":"y"}]}`, "a[n=y].v", 2, `{"a":[{"n":"x"},{"n":"y","v":2}]}`},
		"by key, none yet":            {`{"a":[{"n":"x"}]}`, "a[n=y].v", 2, `{"a":[{"n":"x"},{"n":"y","v":2}]}`},
		"by keys":                     {`{"a":[{"p":80,"q":"TCP"}]}`, "a[p=80,q=UDP].v", 2, `{"a":[{"p":80,"q":"TCP"},{"p":80,"q":"UDP","v":2}]}`},
		"by key, no list yet":         {`{}`, "a[n=y].b[m=1].v", 2, `{"a":[{"n":"y","b":[{"m":1,"v":2}]}]}`},
		"by key, null list":           {`{"a":null}`, "a[n=y].v", 2, `{"a":[{"n":"y","v":2}]}`},
		"by key, text of digits":      {`{}`, `a[n="80"].v`, 2, `{"a":[{"n":"80","v":2}]}`},
		"by key, others have text":    {`{"a":[{"n":"79"}]}`, "a[n=80].v", 2, `{"a":[{"n":"79"},{"n":"80","v":2}]}`},
		"by key, no number in JSON":   {`{}`, "a[n=080,m=1.0].v", 2, `{"a":[{"n":"080","m":"1.0","v":2}]}`},
		"by key, bool and fraction":   {`{}`, "a[n=true,m=1.5].v", 2, `{"a":[{"n":true,"m":1.5,"v":2}]}`},
		"by key, a whole element":     {`{"a":[{"n":"x","old":1}]}`, "a[n=x]", map[string]int{"new": 1}, `{"a":[{"n":"x","new":1}]}`},
		"by key, a whole new element": {`{"a":[]}`, "a[n=x]", map[string]string{"n": "x"}, `{"a":[{"n":"x"}]}`},
		"a key itself":                {`{"a":[{"n":"x"}]}`, "a[n=x].n", "y", `{"a":[{"n":"y"}]}`},
		"by key at a map":             {`{"a":{}}`, "a[n=x]", 1, `{"a":{"[n=x]":1}}`},
		"everything":                  {`{"a":1}`, ".", map[string]int{"b": 1}, `{"b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &Object{Object: valueOf(t, c.before).(map[string]any)}
			fields, err := ParsePath(c.path)
			require.NoError(t, err)
			require.NoError(t, Set(obj, c.value, fields...))
			assertIdentical(t, valueOf(t, c.want), obj.Object)
		})
	}
}

func valueOf(t testing.TB, text string) any {
	t.Helper()
	v, err := decodeValue([]byte(text))
	require.NoError(t, err)
	return v
}

func TestSet_EmptyObject(t *testing.T) {
	obj := &Object{}
	require.NoError(t, Set(obj, "a", "metadata", "name"))
	assert.Equal(t, "a", obj.GetName())
}

func TestSet_ErrorChangesNothing(t *testing.T) {
	for want, c := range map[string]struct {
		path  string
		value any
	}{
		".a.x: is int64, not map[string]any or []any":                                                                                  {"a.x.y", 1},
		".a.x: is int64, not map[string]any or []any ":                                                                                 {"a.x[0].z", 1},
		".list: is []any, which has no field \"x\"":                                                                                    {"list.x", 1},
		".list: is []any of 2: index 3 is beyond its end (2 appends)":                                                                  {"list[3]", 1},
		".list: is []any of 2: index 99999999999999999999 is beyond its end (2 appends)":                                               {"list[99999999999999999999]", 1},
		".new: is not there, and \"0\" may be an index or a field's name: set it to a list or a map first":                             {"new[0]", 1},
		".new.x[n=y].z: is not there, and \"0\" may be an index or a field's name: set it to a list or a map first":                    {"new.x[n=y].z[0].b", 1},
		".list[n=y].z: is not there, and \"0\" may be an index or a field's name: set it to a list or a map first":                     {"list[n=y].z[0].b", 1},
		".list[n=y]: is string, not map[string]any":                                                                                    {"list[n=y]", "x"},
		".list[n=x]: is string, not map[string]any":                                                                                    {"list[n=x]", "x"},
		".list[n=x]: the new value has different keys than the step":                                                                   {"list[n=x]", map[string]string{"n": "y"}},
		".list[n=y]: the new value has different keys than the step":                                                                   {"list[n=y]", map[string]string{"n": "x"}},
		".list[n=y]: the new value has different keys than the step ":                                                                  {"list[n=y].n", "x"},
		".list[0].c.d: cannot encode chan int":                                                                                         {"list[0].c", map[string]any{"d": make(chan int)}},
		".a.x: cannot encode NaN":                                                                                                      {"a.x", math.NaN()},
		".typed: is map[string]string, not map[string]any or []any":                                                                    {"typed.x", "y"},
		".: is string, not map[string]any":                                                                                             {".", "y"},
		".list[n=y].v: cannot encode func()":                                                                                           {"list[n=y].v", func() {}},
		".a.deep[0][0][0][0][0][0][0][0][0][0][0][0][0][0]…[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nested deeper than 10000": {"a.deep", valueOf(t, nested(9999))},
	} {
		t.Run(want, func(t *testing.T) {
			obj := func() *Object {
				return &Object{Object: map[string]any{"a": map[string]any{"x": int64(1)}, "list": []any{map[string]any{"n": "x"}, int64(2)}, "typed": map[string]string{}}}
			}
			fields, err := ParsePath(c.path)
			require.NoError(t, err)
			changed := obj()
			assert.EqualError(t, Set(changed, c.value, fields...), strings.TrimSuffix(want, " "))
			assert.Equal(t, obj(), changed)
		})
	}
	assert.EqualError(t, Set(nil, 1, "a", "b"), ".a.b: cannot be set in a nil object")
	assert.ErrorContains(t, Set(&Object{}, 1, make([]string, 10001)...), "nested deeper than 10000")
	assert.NoError(t, Set(&Object{}, 1, make([]string, 10000)...))
}

func TestSet_CopiesValue(t *testing.T) {
	value := map[string]any{"list": []any{"x"}}
	obj := &Object{}
	require.NoError(t, Set(obj, value, "a"))
	value["list"].([]any)[0] = "changed"
	assert.Equal(t, map[string]any{"a": map[string]any{"list": []any{"x"}}}, obj.Object)
}

func TestSet_AppendCopiesList(t *testing.T) {
	whole := []any{"a", "b", "c"}
	obj := &Object{Object: map[string]any{"list": whole[:1]}}
	require.NoError(t, Set(obj, "x", "list", "1"))
	found, err := Delete(obj, "list", "0")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, []any{"x"}, obj.Object["list"])
	assert.Equal(t, []any{"a", "b", "c"}, whole)
}

// What apimachinery's SetNestedField takes as it is makes DeepCopy panic (https://github.com/kubernetes/kubernetes/issues/62769).
func TestSet_NormalizesValues(t *testing.T) {
	values := map[string]any{"float without a fraction": 3.0, "huge uint64": uint64(math.MaxUint64), "minus zero": math.Copysign(0, -1), "bad text": "a\xff", "large float": 1e300}
	for name, v := range foreignValues {
		values[name] = v
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			obj := &Object{Object: map[string]any{"kind": "A"}}
			require.NoError(t, Set(obj, v, "a", "b"))
			require.NoError(t, Set(obj, []any{v, map[string]any{"x": v}}, "list"))
			assert.NotPanics(t, func() { assert.Equal(t, obj, obj.DeepCopy()) })
			data, err := Encode(&Object{Object: map[string]any{"kind": "A", "a": map[string]any{"b": v}, "list": []any{v, map[string]any{"x": v}}}})
			require.NoError(t, err)
			want, err := Decode(data)
			require.NoError(t, err)
			assertIdentical(t, want.Object, obj.Object)
		})
	}
	obj := &Object{}
	for _, v := range []any{*lazy(t, wholeWidget), lazy(t, wholeWidget), *decoded(t, wholeWidget), decoded(t, wholeWidget)} {
		require.NoError(t, Set(obj, v, "object"))
		assertIdentical(t, decoded(t, wholeWidget).Object, obj.Object["object"])
	}
	require.NoError(t, Set(obj, uint64(math.MaxUint64), "n"))
	assert.IsType(t, float64(0), obj.Object["n"])
	require.NoError(t, Set(obj, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "t"))
	assert.Equal(t, "2026-01-02T03:04:05Z", obj.Object["t"])
}

// TestSet_EqualsApimachinery holds random calls against SetNestedField, NestedFieldCopy and RemoveNestedField,
// where they mean the same: they know no lists on the way, and reject null as a parent.
func TestSet_EqualsApimachinery(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	names := []string{"a", "b", "c"}
	values := []any{"x", int64(1), 1.5, true, map[string]any{"a": int64(1)}, []any{"x"}, map[string]any{}}
	for range 300 {
		ours := &Object{Object: map[string]any{}}
		theirs := map[string]any{}
		for range 20 {
			path := make([]string, 1+random.IntN(3))
			for i := range path {
				path[i] = names[random.IntN(len(names))]
			}
			value := values[random.IntN(len(values))]
			err := Set(ours, value, path...)
			theirErr := unstructuredv1.SetNestedField(theirs, value, path...)
			require.Equal(t, theirErr == nil, err == nil, "%v: %v, %v", path, theirErr, err)
			if random.IntN(3) == 0 {
				// Theirs removes nothing of what is below a list or scalar, and does not say so.
				if _, _, err := unstructuredv1.NestedFieldNoCopy(theirs, path...); err == nil {
					_, there, _ := unstructuredv1.NestedFieldNoCopy(theirs, path...)
					unstructuredv1.RemoveNestedField(theirs, path...)
					found, err := Delete(ours, path...)
					require.NoError(t, err)
					require.Equal(t, there, found)
				}
			}
			require.Equal(t, theirs, ours.Object)
			want, wantFound, wantErr := unstructuredv1.NestedFieldCopy(theirs, path...)
			got, found, err := Get[any](ours, path...)
			require.Equal(t, wantErr == nil, err == nil)
			require.Equal(t, wantFound, found)
			require.Equal(t, want, got)
		}
	}
}

func TestDelete_FieldsAndElements(t *testing.T) {
	for name, c := range map[string]struct {
		before, path, want string
		found              bool
	}{
		"a field":            {`{"a":1,"b":2}`, "a", `{"b":2}`, true},
		"a null field":       {`{"a":null}`, "a", `{}`, true},
		"a deep field":       {`{"a":{"b":{"c":1}}}`, "a.b.c", `{"a":{"b":{}}}`, true},
		"missing":            {`{"a":1}`, "b", `{"a":1}`, false},
		"missing parent":     {`{"a":1}`, "b.c.d", `{"a":1}`, false},
		"null parent":        {`{"a":null}`, "a.c", `{"a":null}`, false},
		"first element":      {`{"a":[1,2,3]}`, "a[0]", `{"a":[2,3]}`, true},
		"last element":       {`{"a":[1,2,3]}`, "a[2]", `{"a":[1,2]}`, true},
		"only element":       {`{"a":[1]}`, "a[0]", `{"a":[]}`, true},
		"past the end":       {`{"a":[1]}`, "a[1]", `{"a":[1]}`, false},
		"by key":             {`{"a":[{"n":"x"},{"n":"y"},{"n":"y","v":1}]}`, "a[n=y]", `{"a":[{"n":"x"},{"n":"y","v":1}]}`, true},
		"by key, none":       {`{"a":[{"n":"x"}]}`, "a[n=y]", `{"a":[{"n":"x"}]}`, false},
		"below by key":       {`{"a":[{"n":"x","v":[1,2]}]}`, "a[n=x].v[0]", `{"a":[{"n":"x","v":[2]}]}`, true},
		"below by key, none": {`{"a":[{"n":"x"}]}`, "a[n=y].v", `{"a":[{"n":"x"}]}`, false},
		"list in a list":     {`{"a":[[1,2]]}`, "a[0][1]", `{"a":[[1]]}`, true},
		"list in digits":     {`{"0":[1,2]}`, "0[1]", `{"0":[1]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &Object{Object: valueOf(t, c.before).(map[string]any)}
			fields, err := ParsePath(c.path)
			require.NoError(t, err)
			found, err := Delete(obj, fields...)
			require.NoError(t, err)
			assert.Equal(t, c.found, found)
			assertIdentical(t, valueOf(t, c.want), obj.Object)
		})
	}
}

func TestDelete_Errors(t *testing.T) {
	obj := &Object{Object: map[string]any{"a": "x", "list": []any{}, "typed": []string{"x"}}}
	for want, fields := range map[string][]string{
		".a: is string, not map[string]any or []any":                 {"a", "b"},
		".a: is string, not map[string]any or []any ":                {"a", "b", "c"},
		`.list: is []any, which has no field "x"`:                    {"list", "x"},
		".typed: is []string, not map[string]any or []any":           {"typed", "0"},
		"cannot delete without a path: it would be the whole object": {},
	} {
		found, err := Delete(obj, fields...)
		assert.EqualError(t, err, strings.TrimSuffix(want, " "))
		assert.False(t, found)
	}
	for _, none := range []*Object{nil, {}} {
		found, err := Delete(none, "a")
		assert.NoError(t, err)
		assert.False(t, found)
	}
}

func FuzzSetGetDelete(f *testing.F) {
	f.Add([]byte(`{"kind":"A","a":[{"n":"x"}]}`), ".a[n=y].v", []byte(`{"b":[1.0]}`))
	f.Add([]byte(`{"kind":"A","a":[1,null]}`), "a[2]", []byte(`null`))
	for _, step := range oddSteps {
		f.Add([]byte(`{"kind":"A","a":[{"a":"b"}]}`), pathText([]string{"a", step}), []byte(`{"x":1}`))
	}
	f.Fuzz(func(t *testing.T, data []byte, path string, value []byte) {
		obj, err := Decode(data)
		if err != nil {
			return
		}
		fields, err := ParsePath(path)
		if err != nil {
			return
		}
		v, err := decodeValue(value)
		if err != nil || v == nil {
			return
		}
		before := obj.DeepCopy()
		if err := Set(obj, v, fields...); err != nil {
			assert.Equal(t, before, obj)
			return
		}
		copied := obj.DeepCopy()
		got, found, err := Get[any](obj, fields...)
		require.NoError(t, err)
		if isKeyed := strings.Contains(path, "="); !isKeyed { // a key may be renamed, and an element gets its keys
			require.True(t, found)
			assertIdentical(t, settled(v), got)
		}
		assert.Equal(t, copied, obj)
		if len(fields) > 0 && found {
			deleted, err := Delete(obj, fields...)
			require.NoError(t, err)
			assert.True(t, deleted)
		}
	})
}
