package unstructured

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// endlessly writes text(0), text(1) … as they are read, up to n.
type endlessly struct {
	n, next int
	text    func(i int) string
	rest    string
}

func (r *endlessly) Read(p []byte) (int, error) {
	for r.rest == "" {
		if r.next == r.n {
			return 0, io.EOF
		}
		r.rest = r.text(r.next)
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestListDecoder_RetainsNoItem(t *testing.T) {
	const n = 20000
	d := NewListDecoder(&endlessly{n: n, text: func(i int) string {
		item := fmt.Sprintf(`{"metadata":{"name":"item-%d"},"spec":{"list":[%d,"%0100d"]}}`, i, i, i)
		switch i {
		case 0:
			return `{"kind":"AList","apiVersion":"v1","items":[` + item
		case n - 1:
			return "," + item + "]}"
		default:
			return "," + item
		}
	}})
	var given []weak.Pointer[Object]
	for i := range n {
		obj, err := d.Next()
		require.NoError(t, err)
		if i%1000 == 0 {
			given = append(given, weak.Make(obj))
		}
	}
	runtime.GC()
	for i, item := range given {
		assert.Nil(t, item.Value(), "item %d", i*1000)
	}
	assert.LessOrEqual(t, d.r.Size(), listChunk)
	_, err := d.Next()
	assert.Equal(t, io.EOF, err)
	runtime.KeepAlive(d)
}

func TestWatchDecoder_RetainsNoEvent(t *testing.T) {
	const n = 5000
	d := NewWatchDecoder(&endlessly{n: n, text: func(i int) string {
		return fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"A","metadata":{"resourceVersion":"%d"},"list":[[%d],"%0100d"]}}`+"\n", i, i, i)
	}})
	var given []weak.Pointer[Object]
	for range n {
		event, err := d.Next()
		require.NoError(t, err)
		given = append(given, weak.Make(event.Object))
	}
	runtime.GC()
	for i, object := range given[:n-1] {
		require.Nil(t, object.Value(), "event %d", i)
	}
	assert.LessOrEqual(t, d.r.Size(), watchChunk)
	_, err := d.Next()
	assert.Equal(t, io.EOF, err)
	runtime.KeepAlive(d)
}

func TestWatchDecoder_BufferGrowsUnderLoad(t *testing.T) {
	event := func(i int) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"A","text":"%01000d"}}`, i)
	}
	for name, c := range map[string]struct {
		ready int // events, at each read
		buf   int
	}{"event by event": {1, watchChunk}, "all at once": {100, maxWatchBuffer}} {
		d := NewWatchDecoder(&endlessly{n: 10, text: func(i int) string {
			var events strings.Builder
			for range c.ready {
				events.WriteString(event(i))
			}
			return events.String()
		}})
		events, err := readEvents(d)
		require.Equal(t, io.EOF, err, name)
		assert.Len(t, events, 10*c.ready, name)
		assert.Equal(t, c.buf, d.r.Size(), name)
	}
}

func TestWatchDecoder_BufferShrinksAfterBookmark(t *testing.T) {
	event := fmt.Sprintf(`{"type":"ADDED","object":{"kind":"A","text":"%01000d"}}`, 0)
	d := NewWatchDecoder(strings.NewReader(strings.Repeat(event, 100) + `{"type":"BOOKMARK","object":{"kind":"A"}}` + event))
	for i := range 100 {
		_, err := d.Next()
		require.NoError(t, err)
		if i == 50 {
			assert.Equal(t, maxWatchBuffer, d.r.Size())
		}
	}
	bookmark, err := d.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Bookmark, bookmark.Type)
	assert.Equal(t, watchChunk, d.r.Size())
	_, err = d.Next()
	require.NoError(t, err, "what was read behind the bookmark is kept")
}

// The buffer is as long as the longest token, not as the input.
func TestWatchDecoder_BufferFitsLongestToken(t *testing.T) {
	const n = 100
	d := NewWatchDecoder(&endlessly{n: n, text: func(i int) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"A","text":"%09000d"}}`, i)
	}})
	events, err := readEvents(d)
	require.Equal(t, io.EOF, err)
	assert.Len(t, events, n)
	assert.LessOrEqual(t, d.r.Size(), 16<<10)
}
