package unstructured

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/race"
)

// things is a list of n objects of about a kilobyte each.
func things(n int) io.Reader {
	return &endlessly{n: n, text: func(i int) string {
		item := fmt.Sprintf(`{"metadata":{"name":"item-%d"},"spec":{"list":[%d,{"text":"%01000d"}]}}`, i, i, i)
		switch i {
		case 0:
			item = `{"kind":"AList","apiVersion":"v1","items":[` + item
		default:
			item = "," + item
		}
		if i == n-1 {
			item += "]}"
		}
		return item
	}}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools let go the first time
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestListDecoder_HeapIsFlat(t *testing.T) {
	race.Skip(t)
	for name, next := range map[string]func(*ListDecoder) error{
		"Next":     func(d *ListDecoder) error { _, err := d.Next(); return err },
		"NextLazy": func(d *ListDecoder) error { _, err := d.NextLazy(); return err },
	} {
		const n = 50_000
		d := NewListDecoder(things(n))
		var early int64
		for i := range n {
			require.NoError(t, next(d), name)
			if i == 100 {
				early = liveHeap()
			}
		}
		assert.Less(t, liveHeap()-early, int64(64<<10), name)
		assert.Equal(t, io.EOF, next(d), name)
		runtime.KeepAlive(d)
	}
}

func TestNextLazy_RetainsNoItem(t *testing.T) {
	const n = 2000
	list := NewListDecoder(things(n))
	events := NewWatchDecoder(&endlessly{n: n, text: func(i int) string {
		return fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"A","list":[[%d],"%0100d"]}}`+"\n", i, i)
	}})
	var given []weak.Pointer[Lazy]
	for range n {
		l, err := list.NextLazy()
		require.NoError(t, err)
		event, err := events.NextLazy()
		require.NoError(t, err)
		given = append(given, weak.Make(l), weak.Make(event.Object))
	}
	runtime.GC()
	for i, l := range given {
		require.Nil(t, l.Value(), "item %d", i/2)
	}
	assert.LessOrEqual(t, list.r.Size(), listChunk)
	assert.LessOrEqual(t, events.r.Size(), watchChunk)
	runtime.KeepAlive(list)
	runtime.KeepAlive(events)
}

// A cache may hold many.
func TestLazy_TakesMemoryOfItsJSON(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Lazy{}), uintptr(64), "besides the JSON; 64 and 80 are sizes that Go allocates")
	const n = 10_000
	kept := make([]*Lazy, 0, n)
	d := NewListDecoder(things(n))
	before := liveHeap()
	size := int64(0)
	for range n {
		l, err := d.NextLazy()
		require.NoError(t, err)
		kept = append(kept, l)
		size = size + int64(len(l.JSON()))
	}
	assert.Less(t, liveHeap()-before, size*5/4)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(d)
}

func TestLazy_SharesNoMemory(t *testing.T) {
	data := sample(t, "pod.json")
	l, err := DecodeLazy(data)
	require.NoError(t, err)
	want, err := Decode(data)
	require.NoError(t, err)
	clear(data)
	assertLazyIs(t, want, l)

	phase, _, err := Get[string](l, "status", "phase")
	require.NoError(t, err)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(l.JSON())))
	for _, text := range []string{l.GetName(), l.GetKind(), l.GetLabels()["app"], phase} {
		at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
		assert.False(t, at >= start && at < start+uintptr(len(l.JSON())), "%s keeps the whole object alive", text)
	}

	obj, err := l.Object()
	require.NoError(t, err)
	obj.SetName("changed")
	obj.Object["spec"].(map[string]any)["containers"].([]any)[0] = "changed"
	assertLazyIs(t, want, l)
}

func TestLazy_Concurrent(t *testing.T) {
	l, err := DecodeLazy(sample(t, "pod.json"))
	require.NoError(t, err)
	want, err := l.Object()
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				assert.Equal(t, want.GetName(), l.GetName())
				assert.Equal(t, want.GetLabels(), l.GetLabels())
				phase, found, err := Get[string](l, "status", "phase")
				assert.NoError(t, err)
				assert.True(t, found)
				assert.Equal(t, "Running", phase)
				obj, err := l.Object()
				assert.NoError(t, err)
				assert.Equal(t, want, obj)
				obj.SetName("changed")
			}
		})
	}
	group.Wait()
}

// large is an object of size bytes and more.
func large(size int) string {
	return `{"kind":"A","text":"` + strings.Repeat("x", size) + `"}`
}

// The buffer grows to the object's size and shrinks behind it; otherwise only the result is in memory.
func TestDecoders_MemoryOfVeryLargeObject(t *testing.T) {
	race.Skip(t)
	const size = 20 << 20
	list := []byte(`{"kind":"AList","apiVersion":"v1","items":[` + large(size) + `,{"n":1},{"n":2}]}`)
	events := []byte(`{"type":"ADDED","object":` + large(size) + "}\n" + added + added)
	var items *ListDecoder
	var frames *WatchDecoder
	for name, next := range map[string]func() error{
		"list":       func() error { _, err := items.Next(); return err },
		"lazy list":  func() error { _, err := items.NextLazy(); return err },
		"watch":      func() error { _, err := frames.Next(); return err },
		"lazy watch": func() error { _, err := frames.NextLazy(); return err },
	} {
		items = NewListDecoder(bytes.NewReader(list))
		frames = NewWatchDecoder(bytes.NewReader(events))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, next(), name)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(6*size), name)
		require.NoError(t, next(), name)
		require.NoError(t, next(), name)
		assert.Equal(t, listChunk, items.r.Size(), name)
		assert.Equal(t, watchChunk, frames.r.Size(), name)
	}
}

// Each byte is looked at once, however small the pieces are in which a large object comes: otherwise this would take
// hours.
func TestNextLazy_LargeObjectInSmallPieces(t *testing.T) {
	for name, value := range map[string]string{
		"text": `"` + strings.Repeat("x", 1<<20) + `"`, "escapes": `"` + strings.Repeat(`\u00e9`, 1<<18) + `"`,
		"number": "0." + strings.Repeat("1", 1<<20), "list": "[" + strings.Repeat("1,", 1<<19) + "1]", "space": strings.Repeat(" ", 1<<20) + "1",
	} {
		data := inObject(value)
		d := NewWatchDecoder(&pieces{data: []byte(`{"type":"ADDED","object":` + string(data) + "}")})
		event, err := d.NextLazy()
		require.NoError(t, err, name)
		assert.Equal(t, string(data), string(event.Object.JSON()), name)
	}
}

// pieces is a reader that returns seven bytes at a time.
type pieces struct{ data []byte }

func (r *pieces) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 7)], r.data)
	r.data = r.data[n:]
	return n, nil
}
