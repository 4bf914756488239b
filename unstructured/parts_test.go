package unstructured

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modified is a watch that has each of these objects once.
func modified(objects ...string) io.Reader {
	var frames strings.Builder
	for _, obj := range objects {
		fmt.Fprintf(&frames, `{"type":"MODIFIED","object":%s}`+"\n", obj)
	}
	return strings.NewReader(frames.String())
}

func readShared(t *testing.T, parts *Parts, r io.Reader) []*Object {
	t.Helper()
	events := NewWatchDecoder(r)
	events.Share(parts)
	var all []*Object
	for {
		event, err := events.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, event.Object)
	}
}

// where is where a field's map or list is in memory.
func where(t *testing.T, obj *Object, fields ...string) uintptr {
	t.Helper()
	var v any = obj.Object // Get would copy
	for _, field := range fields {
		m, isMap := v.(map[string]any)
		require.True(t, isMap)
		v = m[field]
	}
	return reflect.ValueOf(v).Pointer()
}

func TestEqualPartsAreMadeOnce(t *testing.T) {
	pod := func(i int) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-%d","labels":{"app":"web"}},"spec":{"tolerations":[{"key":"a"}]}}`, i)
	}
	parts := NewParts()
	list := NewListDecoder(strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[` + pod(0) + "," + pod(1) + "]}"))
	list.Share(parts)
	var all []*Object
	for range 2 {
		obj, err := list.Next()
		require.NoError(t, err)
		all = append(all, obj)
	}
	all = append(all, readShared(t, parts, modified(pod(2), pod(3)))...)
	for i, obj := range all {
		plain, err := Decode([]byte(pod(i)))
		require.NoError(t, err)
		assert.Equal(t, plain, obj)
	}
	for _, fields := range [][]string{{"metadata", "labels"}, {"spec", "tolerations"}} {
		assert.Equal(t, where(t, all[1], fields...), where(t, all[2], fields...), "what came twice is kept")
		assert.Equal(t, where(t, all[2], fields...), where(t, all[3], fields...))
	}
	assert.NotEqual(t, where(t, all[2], "metadata"), where(t, all[3], "metadata"), "what is not equal is its own")
}

func TestAnObjectIsItsOwnThoughAllOfItIsShared(t *testing.T) {
	const obj = `{"kind":"Thing","apiVersion":"v1","spec":{"a":[1]}}`
	all := readShared(t, NewParts(), modified(obj, obj, obj, obj))
	assert.Equal(t, where(t, all[2], "spec"), where(t, all[3], "spec"))
	all[3].SetKind("Other")
	assert.Equal(t, "Thing", all[2].GetKind())
}

func TestACopyOfASharedObjectMayBeChanged(t *testing.T) {
	const obj = `{"kind":"Thing","apiVersion":"v1","spec":{"a":[1]}}`
	all := readShared(t, NewParts(), modified(obj, obj, obj, obj))
	require.NoError(t, Set(all[3].DeepCopy(), int64(2), "spec", "a", "0"))
	one, _, err := Get[int64](all[2], "spec", "a", "0")
	require.NoError(t, err)
	assert.EqualValues(t, 1, one)
}

// TestWhatIsSharedIsBounded reads what comes twice and never again, for ever.
func TestWhatIsSharedIsBounded(t *testing.T) {
	parts := NewParts()
	r := newReader(nil, 0)
	r.parts = parts
	read := func(text string) {
		r.window, r.lookedAhead = window{buf: []byte(text), end: len(text)}, 0
		_, err := r.part(r.collection)
		require.NoError(t, err)
	}
	const length = 1 << 10
	for i := range 3 * partsSize / length {
		parts.luck = [256]luck{} // else it would give up
		for range 2 {
			read(fmt.Sprintf(`["%0*d"]`, length, i))
		}
	}
	assert.LessOrEqual(t, parts.size, partsSize+2*length)
	assert.Less(t, len(parts.recent)+len(parts.before), 2*partsSize/length+2)

	read(`{"mine":1}`)
	read(`{"mine":1}`)
	for range 3 * partsLooks {
		read(`{"other":1}`)
	}
	assert.NotContains(t, parts.recent, `{"mine":1}`)
	assert.NotContains(t, parts.before, `{"mine":1}`, "what does not come any more is forgotten")
	assert.Contains(t, parts.recent, `{"other":1}`)
}

func TestNamesWhoseValuesAreNeverEqualAreRarelyLookedFor(t *testing.T) {
	parts := NewParts()
	for i := range 1000 {
		readShared(t, parts, modified(fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","status":{"value":%d}}`, i)))
	}
	assert.LessOrEqual(t, parts.looks, 1000/luckIdleLooks+10)
}

func TestLongPartsAreReadAsAllOthers(t *testing.T) {
	obj := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","spec":{"text":%q,"list":[{"a":1}]}}`, strings.Repeat("x", 2*partLongest))
	plain, err := Decode([]byte(obj))
	require.NoError(t, err)
	for _, got := range readShared(t, NewParts(), modified(obj, obj, obj, obj)) {
		assert.Equal(t, plain, got)
	}
}

// FuzzParts reads a watch again and again, so that ever more of it is found.
func FuzzParts(f *testing.F) {
	addFrames(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := readEvents(NewWatchDecoder(bytes.NewReader(data)))
		parts := NewParts()
		var held []Event[Object] // so that what was read is found as what was before
		read := func(r io.Reader) {
			events := NewWatchDecoder(r)
			events.Share(parts)
			got, err := readEvents(events)
			assert.Equal(t, want, got)
			assert.Equal(t, text(wantErr), text(err))
			held = append(held, got...)
		}
		for range 4 {
			read(bytes.NewReader(data))
		}
		for _, r := range chunked(data) {
			read(r)
		}
		runtime.KeepAlive(held)
	})
}

// TestWatchDecoder_BoundsLookAhead reads objects in which each level has a part that is found, which makes it worth
// looking, and one that never ends within what is looked at.
func TestWatchDecoder_BoundsLookAhead(t *testing.T) {
	for name, level := range map[string]string{"found in between": `{"a":{},"a":{},"a":`, "never found": `{"a":`, "lists": `[{},`} {
		t.Run(name, func(t *testing.T) {
			const depth = 9000
			end := strings.Repeat(map[bool]string{true: "]", false: "}"}[name == "lists"], depth)
			obj := `{"kind":"Thing","metadata":{"uid":"u"},"spec":` + strings.Repeat(level, depth) + "1" + end + "}"
			plain, err := Decode([]byte(obj))
			require.NoError(t, err)
			events := NewWatchDecoder(modified(obj, obj, obj))
			events.Share(NewParts())
			for range 3 {
				event, err := events.Next()
				require.NoError(t, err)
				assert.Equal(t, plain, event.Object)
				assert.LessOrEqual(t, events.r.lookedAhead, int64(maxLookAhead*len(obj)+2*partLongest))
			}
		})
	}
}
