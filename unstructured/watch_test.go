package unstructured

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func watchOf(text string) *WatchDecoder { return NewWatchDecoder(strings.NewReader(text)) }

const added = `{"type":"ADDED","object":{"kind":"A","n":1}}`

// The pipe is silent behind each closing brace: a decoder that reads more would wait for ever.
func TestWatchDecoder_EventAtClosingBrace(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }()
	d := NewWatchDecoder(r)
	for _, frame := range []string{added, "\n" + added, " \n\n " + added, `{"object":{"kind":"A","n":1},"type":"ADDED"}`} {
		written := make(chan error, 1)
		go func() {
			_, err := w.Write([]byte(frame))
			written <- err
		}()
		event, err := d.Next()
		require.NoError(t, err)
		require.NoError(t, <-written)
		assert.Equal(t, WatchEvent[Object]{Type: watch.Added, Object: &Object{Object: map[string]any{"kind": "A", "n": int64(1)}}}, event)
	}
	require.NoError(t, w.Close())
	_, err := d.Next()
	assert.True(t, err == io.EOF)
}

func TestWatchDecoder_OneReadForOneChunk(t *testing.T) {
	reads := 0
	d := NewWatchDecoder(readFunc(func(p []byte) (int, error) {
		if reads++; reads > 1 {
			return 0, errors.New("read again")
		}
		return copy(p, added+"\n"+added+added), nil
	}))
	for range 3 {
		_, err := d.Next()
		require.NoError(t, err)
	}
	_, err := d.Next()
	assert.ErrorContains(t, err, "read again")
}

func TestWatchDecoder_Buffered(t *testing.T) {
	const next = `{"type`
	d := watchOf(added + "\n \n" + added + "\n" + next)
	for _, want := range []int{len(added + "\n" + next), len(next)} {
		_, err := d.Next()
		require.NoError(t, err)
		assert.Equal(t, want, d.Buffered())
		assert.Equal(t, want, d.Buffered())
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestWatchDecoder_Events(t *testing.T) {
	events, err := readEvents(NewWatchDecoder(bytes.NewReader(sample(t, "watch.json"))))
	require.Equal(t, io.EOF, err)
	require.Len(t, events, 5)
	for i, want := range []watch.EventType{watch.Added, watch.Modified, watch.Bookmark, watch.Deleted, watch.Error} {
		assert.Equal(t, want, events[i].Type)
	}
	assert.Equal(t, "12746", events[2].Object.GetResourceVersion())
}

func TestWatchDecoder_ContinuesAfterErrorEvent(t *testing.T) {
	d := watchOf(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}` + added)
	event, err := d.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Error, event.Type)
	assert.Equal(t, int64(410), event.Object.Object["code"])
	event, err = d.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Added, event.Type)
}

func TestWatchDecoder_EOFBetweenEventsOnly(t *testing.T) {
	data := added + "\n"
	for i := range len(data) + 1 {
		events, err := readEvents(watchOf(data[:i]))
		switch i {
		case 0:
			assert.True(t, err == io.EOF)
		case len(added), len(data):
			assert.True(t, err == io.EOF)
			assert.Len(t, events, 1)
		default:
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF, data[:i])
			assert.Empty(t, events)
		}
	}
}

func TestWatchDecoder_ReaderError(t *testing.T) {
	broken := errors.New("broken")
	for _, rest := range []string{"", "\n", `{`, `{"ty`, `{"type":"ADDED","object":{"a":1`, `{"type":"ADDED","object":{"a":nul`, `{"type":"ADDED","object":{"a":"\u00`} {
		for _, as := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.OneByteReader, iotest.DataErrReader} {
			d := NewWatchDecoder(as(io.MultiReader(strings.NewReader(added+rest), iotest.ErrReader(broken))))
			events, err := readEvents(d)
			assert.Len(t, events, 1)
			assert.ErrorIs(t, err, broken, rest)
			_, again := d.Next()
			assert.Same(t, err, again)
		}
	}
}

// net/http returns this error for a body that was cut. It is not the end of the watch.
func TestWatchDecoder_CutBody(t *testing.T) {
	_, err := readEvents(NewWatchDecoder(io.MultiReader(strings.NewReader(added), iotest.ErrReader(io.ErrUnexpectedEOF))))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWatchDecoder_Errors(t *testing.T) {
	for name, want := range map[string]string{
		"unknown type":       `unknown watch event type "RENAMED"`,
		"empty type":         `unknown watch event type ""`,
		"number for a type":  "watch event's type is int64, not a string",
		"no type":            "watch event's type is null, not a string",
		"no object":          "ADDED watch event's object is null, not an object",
		"list for an object": "ADDED watch event's object is []any, not an object",
		"list":               "invalid JSON at byte 0: '[' where a watch event should begin",
		"comma between":      "invalid JSON at byte 38: ',' where a watch event should begin",
	} {
		d := watchOf(oddFrames[name])
		_, err := readEvents(d)
		assert.EqualError(t, err, want, name)
		_, again := d.Next()
		assert.Same(t, err, again)
	}
	_, err := readEvents(watchOf(oddFrames["no kind"]))
	assert.True(t, runtime.IsMissingKind(err))
}
