package unstructured

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/race"
)

// assertLazyParity holds NewLazy to Decode, errors included.
func assertLazyParity(t testing.TB, data []byte) {
	t.Helper()
	want, wantErr := Decode(data)
	l, err := DecodeLazy(data)
	assert.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	if wantErr != nil {
		assert.Nil(t, l)
		return
	}
	assertLazyIs(t, want, l)
}

// assertLazyIs checks that l has the values of want.
func assertLazyIs(t testing.TB, want *Object, l *Lazy) {
	t.Helper()
	got, err := l.Object()
	require.NoError(t, err)
	assertIdentical(t, want.Object, got.Object)
	assert.Equal(t, want.GetKind(), l.GetKind())
	assert.Equal(t, want.GetAPIVersion(), l.GetAPIVersion())
	assert.Equal(t, want.GroupVersionKind(), l.GroupVersionKind())
	assert.Equal(t, want.GetName(), l.GetName())
	assert.Equal(t, want.GetNamespace(), l.GetNamespace())
	assert.Equal(t, want.GetUID(), l.GetUID())
	assert.Equal(t, want.GetResourceVersion(), l.GetResourceVersion())
	assert.Equal(t, want.GetLabels(), l.GetLabels())
	assert.Equal(t, want.GetAnnotations(), l.GetAnnotations())
	assert.Equal(t, want.GetOwnerReferences(), l.GetOwnerReferences())
	assert.Len(t, l.data, cap(l.data), "more memory than it needs")
	assertJSONIs(t, want, l)
	assertGetParity(t, want, l, 3)
}

func assertJSONIs(t testing.TB, want *Object, l *Lazy) {
	t.Helper()
	before := bytes.Clone(l.JSON())
	marshaled, err := json.Marshal(l)
	require.NoError(t, err)
	for _, data := range [][]byte{l.JSON(), marshaled} {
		v, _, err := readJSON(data)
		require.NoError(t, err)
		assertIdentical(t, want.Object, v)
	}
	assert.Equal(t, before, l.JSON())
}

// assertGetParity checks that Get of paths in obj, up to so many, and of some that are not, is the same of both.
func assertGetParity(t testing.TB, obj *Object, l *Lazy, left int) {
	t.Helper()
	var visit func(v any, path []string)
	visit = func(v any, path []string) {
		if left--; left < 0 || len(path) > 20 {
			return
		}
		assertGetIs(t, obj, l, path)
		path = path[:len(path):len(path)]
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				visit(member, append(path, name))
			}
		case []any:
			for i, element := range v {
				visit(element, append(path, fmt.Sprint(i)))
			}
			assertGetIs(t, obj, l, append(path, "00"))
			assertGetIs(t, obj, l, append(path, fmt.Sprint(len(v))))
			assertGetIs(t, obj, l, append(path, "99999999999999999999"))
		}
		for _, missing := range []string{"", "no such", "0", "-1", "name", "metadata", "kind"} {
			assertGetIs(t, obj, l, append(path, missing))
			assertGetIs(t, obj, l, append(path, missing, "below"))
		}
	}
	visit(obj.Object, nil)
}

func assertGetIs(t testing.TB, obj *Object, l *Lazy, path []string) {
	t.Helper()
	assertReadsAlike[any](t, obj, l, path)
	assertReadsAlike[string](t, obj, l, path)
	assertReadsAlike[int64](t, obj, l, path)
	assertReadsAlike[map[string]string](t, obj, l, path)
	assertReadsAlike[[]string](t, obj, l, path)
}

func assertReadsAlike[T any](t testing.TB, obj *Object, l *Lazy, path []string) {
	t.Helper()
	want, wantFound, wantErr := Get[T](obj, path...)
	got, found, err := Get[T](l, path...)
	if _, isStringMap := any(want).(map[string]string); isStringMap && wantErr != nil && err != nil {
		return // of several wrong members the error names any one
	}
	if wantFound != found || fmt.Sprint(wantErr) != fmt.Sprint(err) || !identical(any(want), any(got)) {
		assert.Fail(t, "Get differs", "%q: want %#v, %v, %v; got %#v, %v, %v", path, want, wantFound, wantErr, got, found, err)
	}
}

// readLazyList reads to the error, which is io.EOF if all is well.
func readLazyList(d *ListDecoder) ([]*Lazy, error) {
	items := []*Lazy{}
	for {
		item, err := d.NextLazy()
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
}

// assertLazyListParity holds NextLazy to Next.
func assertLazyListParity(t testing.TB, data []byte) {
	t.Helper()
	d := NewListDecoder(bytes.NewReader(data))
	want, wantErr := readList(d)
	lazy := NewListDecoder(bytes.NewReader(data))
	got, err := readLazyList(lazy)
	assert.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	assertIdentical(t, d.head, lazy.head)
	require.Len(t, got, len(want))
	for i := range got {
		assertLazyIs(t, &want[i], got[i])
	}
	if len(data) > 1000 {
		return
	}
	for how, r := range chunked(data) {
		again, err := readLazyList(NewListDecoder(r))
		assert.Equal(t, got, again, how)
		assert.Equal(t, text(wantErr), text(err), how)
	}
}

func readLazyEvents(d *WatchDecoder) ([]WatchEvent[Lazy], error) {
	events := []WatchEvent[Lazy]{}
	for {
		event, err := d.NextLazy()
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
}

// assertLazyWatchParity holds NextLazy to Next.
func assertLazyWatchParity(t testing.TB, data []byte) {
	t.Helper()
	want, wantErr := readEvents(NewWatchDecoder(bytes.NewReader(data)))
	got, err := readLazyEvents(NewWatchDecoder(bytes.NewReader(data)))
	assert.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	require.Len(t, got, len(want))
	for i := range got {
		assert.Equal(t, want[i].Type, got[i].Type)
		assertLazyIs(t, want[i].Object, got[i].Object)
	}
	if len(data) > 1000 {
		return
	}
	for how, r := range chunked(data) {
		again, err := readLazyEvents(NewWatchDecoder(r))
		assert.Equal(t, got, again, how)
		assert.Equal(t, text(wantErr), text(err), how)
	}
}

// lazyDocuments are objects in which it matters which of several fields counts.
var lazyDocuments = map[string]string{
	"names twice":             `{"kind":"A","metadata":{"name":"a","name":"b","uid":"u"}}`,
	"metadata twice":          `{"kind":"A","metadata":{"name":"a","uid":"u"},"metadata":{"namespace":"n"}}`,
	"metadata, then null":     `{"kind":"A","metadata":{"name":"a"},"metadata":null}`,
	"metadata, then a list":   `{"kind":"A","metadata":{"name":"a"},"metadata":[{"name":"b"}]}`,
	"name elsewhere":          `{"kind":"A","spec":{"name":"x","metadata":{"name":"y"}},"name":"z","metadata":{"labels":{"name":"l"}}}`,
	"metadata in metadata":    `{"kind":"A","metadata":{"metadata":{"name":"x"},"name":"a","ownerReferences":[{"name":"o"}]}}`,
	"name behind metadata":    `{"kind":"A","metadata":{"name":"a"},"x":{"name":"b"},"y":[{"name":"c"}]}`,
	"escaped names":           `{"kin\u0064":"A","met\u0061data":{"\u006eame":"a\n\u00e9\ud83e"},"st\u0061tus":{"ph\u0061se":"x"}}`,
	"wrong types":             `{"kind":"A","apiVersion":1,"metadata":{"name":1,"namespace":null,"uid":{},"resourceVersion":["1"],"labels":{"a":1},"annotations":[]}}`,
	"null labels":             `{"kind":"A","metadata":{"labels":null,"annotations":{"a":null},"ownerReferences":null}}`,
	"null annotations":        `{"kind":"A","metadata":{"annotations":null}}`,
	"empty labels":            `{"kind":"A","metadata":{"labels":{},"annotations":{"":""},"ownerReferences":[]}}`,
	"owners":                  `{"kind":"A","metadata":{"ownerReferences":[{"name":"a","kind":"B","uid":"u","apiVersion":"v1","controller":true},{"name":1},{}]}}`,
	"space":                   " { \"kind\" : \"A\" , \"metadata\" : { \"name\" : \"a\" , \"labels\" : { } } , \"list\" : [ 1 , { } , [ ] ] } ",
	"kind twice, lost":        `{"kind":"A","metadata":{"name":"a"},"kind":null}`,
	"apiVersion with escapes": `{"kind":"A","apiVersion":"a\/b\/c"}`,
	"group with escapes":      `{"kind":"A","apiVersion":"apps\/v1"}`,
	"not UTF-8":               "{\"kind\":\"A\xff\",\"metadata\":{\"name\":\"é\xff\",\"\xff\":1,\"\xfe\":2}}",
}

func TestDecodeLazy_EqualsDecode(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) { assertLazyParity(t, data) })
	}
	for name, document := range lazyDocuments {
		t.Run(name, func(t *testing.T) { assertLazyParity(t, []byte(document)) })
	}
}

func TestGet_LazyEqualsObject(t *testing.T) {
	check := func(t *testing.T, data []byte) {
		obj, err := Decode(data)
		require.NoError(t, err)
		l, err := DecodeLazy(data)
		require.NoError(t, err)
		assertGetParity(t, obj, l, 150)
	}
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) { check(t, data) })
	}
	for name, document := range lazyDocuments {
		if name != "kind twice, lost" && name != "apiVersion with escapes" {
			t.Run(name, func(t *testing.T) { check(t, []byte(document)) })
		}
	}
}

func TestLazy_Nil(t *testing.T) {
	for _, l := range []*Lazy{nil, {}} {
		_, found, err := Get[any](l)
		assert.NoError(t, err)
		assert.False(t, found)
	}
	_, err := new(Lazy).Object()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestDecodeLazy_NastyInput(t *testing.T) {
	race.Skip(t)
	for name, value := range nastyValues {
		t.Run(name, func(t *testing.T) {
			assertLazyParity(t, inObject(value))
			assertLazyWatchParity(t, []byte(`{"type":"ADDED","object":`+string(inObject(value))+"}\n{}"))
			for _, list := range []string{`[{"value":` + value + `},{}]`, `[` + value + `]`, value} {
				assertLazyListParity(t, []byte(`{"kind":"AList","apiVersion":"v1","items":`+list+`}`))
			}
		})
	}
	for name, document := range nastyDocuments {
		t.Run(name, func(t *testing.T) {
			assertLazyParity(t, []byte(document))
			assertLazyListParity(t, []byte(document))
		})
	}
	for name, list := range oddLists {
		t.Run(name, func(t *testing.T) { assertLazyListParity(t, []byte(list)) })
	}
	for name, frames := range oddFrames {
		t.Run(name, func(t *testing.T) { assertLazyWatchParity(t, []byte(frames)) })
	}
}

func TestDecodeLazy_EveryByte(t *testing.T) {
	for b := range 256 {
		c := string([]byte{byte(b)})
		for _, value := range []string{c + "1", "1" + c, `"` + c + `"`, `"1234567` + c + `1234567"`, `"\` + c + `"`, `"\u00` + c + `0"`, `{"` + c + `":1}`, `{"a"` + c + `1}`, `{"a":1` + c, `[1` + c, "tru" + c} {
			assertLazyParity(t, inObject(value))
		}
	}
}

func TestDecodeLazy_CutInput(t *testing.T) {
	for _, data := range []string{splitTokens, `{"kind":"A","list":[x`, `{"kind":"A","list":[-`, `{"kind":"A","list":[tr`, `{"kind":"A","list":["\u00`} {
		for i := range data {
			assertLazyParity(t, []byte(data[:i+1]))
		}
	}
}

func TestNextLazy_ItemsGetListKind(t *testing.T) {
	fields := []string{`"kind":"A\"é\\List"`, `"apiVersion":"v1"`, `"items":[{"n":0},{},{ },null,{"n":1,"kind":"B"},{"kind":"","apiVersion":null,"metadata":{"name":"x"}}]`}
	for _, order := range permutations(fields) {
		assertLazyListParity(t, []byte("{"+strings.Join(order, ",")+"}"))
	}
}

func TestListDecoder_RejectsMixedNextAndNextLazy(t *testing.T) {
	d := listOf(`{"items":[{"n":0},{"kind":"A","n":1}],"kind":"AList","apiVersion":"v1"}`)
	_, err := d.Next()
	require.NoError(t, err)
	_, err = d.NextLazy()
	require.ErrorContains(t, err, "Next alone")
	_, again := d.Next()
	assert.Same(t, err, again)
}

func TestWatchDecoder_NextAndNextLazyAlternate(t *testing.T) {
	d := watchOf(added + added)
	event, err := d.NextLazy()
	require.NoError(t, err)
	full, err := d.Next()
	require.NoError(t, err)
	assertLazyIs(t, full.Object, event.Object)
}
