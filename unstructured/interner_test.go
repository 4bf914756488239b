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

	"github.com/anykind/anykind/internal/jsonread"
)

// modified is a watch that has each of these objects once.
func modified(objects ...string) io.Reader {
	var frames strings.Builder
	for _, obj := range objects {
		fmt.Fprintf(&frames, `{"type":"MODIFIED","object":%s}`+"\n", obj)
	}
	return strings.NewReader(frames.String())
}

func readInterned(t *testing.T, interner *jsonread.Interner, r io.Reader) []*Object {
	t.Helper()
	events := NewWatchDecoder(interner.Source(r))
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

// address returns where a field's map or list is in memory.
func address(t *testing.T, obj *Object, fields ...string) uintptr {
	t.Helper()
	var v any = obj.Object // Get would copy
	for _, field := range fields {
		m, isMap := v.(map[string]any)
		require.True(t, isMap)
		v = m[field]
	}
	return reflect.ValueOf(v).Pointer()
}

func TestInterning_ListAndWatchReuseEqualValues(t *testing.T) {
	pod := func(i int) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-%d","labels":{"app":"web"}},"spec":{"tolerations":[{"key":"a"}]}}`, i)
	}
	interner := jsonread.NewInterner()
	list := NewListDecoder(interner.Source(strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[` + pod(0) + "," + pod(1) + "]}")))
	var all []*Object
	for range 2 {
		obj, err := list.Next()
		require.NoError(t, err)
		all = append(all, obj)
	}
	all = append(all, readInterned(t, interner, modified(pod(2), pod(3)))...)
	for i, obj := range all {
		plain, err := Decode([]byte(pod(i)))
		require.NoError(t, err)
		assert.Equal(t, plain, obj)
	}
	for _, fields := range [][]string{{"metadata", "labels"}, {"spec", "tolerations"}} {
		assert.Equal(t, address(t, all[1], fields...), address(t, all[2], fields...), "what came twice is kept")
		assert.Equal(t, address(t, all[2], fields...), address(t, all[3], fields...))
	}
	assert.NotEqual(t, address(t, all[2], "metadata"), address(t, all[3], "metadata"), "what is not equal is its own")
}

func TestInterning_CopiesMayBeChanged(t *testing.T) {
	const obj = `{"kind":"Thing","apiVersion":"v1","spec":{"a":[1]}}`
	all := readInterned(t, jsonread.NewInterner(), modified(obj, obj, obj, obj))
	require.NoError(t, Set(all[3].DeepCopy(), int64(2), "spec", "a", "0"))
	one, _, err := Get[int64](all[2], "spec", "a", "0")
	require.NoError(t, err)
	assert.EqualValues(t, 1, one)
}

// FuzzInterningWatchDecoder reads a watch again and again, so that ever more of it is found.
func FuzzInterningWatchDecoder(f *testing.F) {
	addFrames(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := readEvents(NewWatchDecoder(bytes.NewReader(data)))
		interner := jsonread.NewInterner()
		var held []WatchEvent[Object] // so that they are found as previous versions
		read := func(r io.Reader) {
			got, err := readEvents(NewWatchDecoder(interner.Source(r)))
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

func TestInterning_ListReusesVersionsOfWatch(t *testing.T) {
	obj := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","uid":"u1"},"spec":{"a":%q}}`, strings.Repeat("x", 600))
	interner := jsonread.NewInterner()
	all := readInterned(t, interner, modified(obj))
	again, err := NewListDecoder(interner.Source(strings.NewReader(`{"kind":"ThingList","apiVersion":"v1","items":[` + obj + "]}"))).Next()
	require.NoError(t, err)
	assert.Equal(t, address(t, all[0], "spec"), address(t, again, "spec"))
}
