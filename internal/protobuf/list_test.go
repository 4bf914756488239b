package protobuf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delimitedField encodes a length-delimited field.
func delimitedField(number int, content ...[]byte) []byte {
	all := bytes.Join(content, nil)
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|wireBytes), uint64(len(all))), all...)
}

func textField(number int, text string) []byte { return delimitedField(number, []byte(text)) }

// envelope encodes runtime.Unknown like the API server.
func envelope(apiVersion, kind string, raw ...[]byte) []byte {
	typeMeta := delimitedField(1, textField(1, apiVersion), textField(2, kind))
	return bytes.Join([][]byte{magic, typeMeta, delimitedField(2, raw...), textField(3, ""), textField(4, "")}, nil)
}

func listMeta(t testing.TB, meta metav1.ListMeta) []byte {
	t.Helper()
	raw, err := meta.Marshal()
	require.NoError(t, err)
	return delimitedField(1, raw)
}

// readList returns copies of the items, and the error behind them.
func readList(l *ListReader) (items [][]byte, err error) {
	for {
		item, err := l.Next()
		if err != nil {
			return items, err
		}
		items = append(items, bytes.Clone(item))
	}
}

func TestListReader_Items(t *testing.T) {
	pod := readSample(t, "pod").raw
	meta := metav1.ListMeta{ResourceVersion: "7", Continue: "next"}
	large := textField(2, string(make([]byte, 2*maxKept)))
	for _, c := range []struct {
		name  string
		raw   [][]byte
		items [][]byte
	}{
		{"empty", [][]byte{listMeta(t, meta)}, nil},
		{"items", [][]byte{listMeta(t, meta), delimitedField(2, pod), delimitedField(2), delimitedField(2, large), delimitedField(2, pod)}, [][]byte{pod, {}, large, pod}},
		{"metadata behind the items", [][]byte{delimitedField(2, pod), listMeta(t, meta)}, [][]byte{pod}},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := envelope("v1", "PodList", c.raw...)
			for _, src := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)), iotest.DataErrReader(bytes.NewReader(body))} {
				l := NewListReader(src, 1<<24, errExceeded)
				typeMeta, err := l.Header()
				require.NoError(t, err)
				assert.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, typeMeta)
				items, err := readList(l)
				require.Equal(t, io.EOF, err)
				require.Len(t, items, len(c.items))
				for i := range items {
					assert.True(t, bytes.Equal(c.items[i], items[i]), "item %d", i)
				}
				assert.Equal(t, meta, l.Meta())
				_, err = l.Next()
				assert.Equal(t, io.EOF, err)
			}
		})
	}
}

func TestListReader_EveryByteMissing(t *testing.T) {
	pod := readSample(t, "secret").raw
	body := envelope("v1", "SecretList", listMeta(t, metav1.ListMeta{}), delimitedField(2, pod), delimitedField(2, pod))
	broken := errors.New("broken")
	for i := range body {
		items, err := readList(NewListReader(bytes.NewReader(body[:i]), 1<<20, errExceeded))
		// Behind the list the envelope has two empty fields, of two bytes each. Between them the body may end.
		if i == len(body)-4 || i == len(body)-2 {
			require.Equal(t, io.EOF, err)
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", i)
		assert.LessOrEqual(t, len(items), 2)
		src := io.MultiReader(bytes.NewReader(body[:i]), iotest.ErrReader(broken))
		_, err = readList(NewListReader(src, 1<<20, errExceeded))
		require.ErrorIs(t, err, broken)
	}
}

func TestListReader_Errors(t *testing.T) {
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"JSON", []byte(`{"kind":"List"}`), `invalid Protobuf: the body begins with "{\"ki", not "k8s\x00"`},
		{"no list", envelope("v1", "Status"), `"v1" "Status" is not a list`},
		{"unknown field", envelope("v1", "PodList", textField(3, "")), "Protobuf message of PodList: field 3 is unknown"},
		{"item beyond the list", envelope("v1", "PodList", delimitedField(2, []byte("a"))[:2]), "invalid Protobuf: the message ends early"},
		{"large item", envelope("v1", "PodList", delimitedField(2, make([]byte, 2048))), errExceeded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readList(NewListReader(bytes.NewReader(c.body), 1024, errExceeded))
			require.EqualError(t, err, c.want)
		})
	}
}

func frame(event []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

func TestReadFrame_Events(t *testing.T) {
	object := envelope("v1", "Pod", textField(1, "x"))
	event := append(textField(1, "ADDED"), delimitedField(2, delimitedField(1, object))...)
	stream := bytes.Repeat(frame(event), 2)
	for i := range stream {
		src := bytes.NewReader(stream[:i])
		var buf bytes.Buffer
		for range i / len(frame(event)) {
			read, err := ReadFrame(src, &buf, 1024, errExceeded)
			require.NoError(t, err)
			eventType, got, err := Event(read)
			require.NoError(t, err)
			assert.Equal(t, "ADDED", eventType)
			assert.Equal(t, object, got)
			assert.True(t, HasEnvelope(got))
		}
		_, err := ReadFrame(src, &buf, 1024, errExceeded)
		if i%len(frame(event)) == 0 {
			require.Equal(t, io.EOF, err)
		} else {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
	}
	_, err := ReadFrame(bytes.NewReader(stream), &bytes.Buffer{}, 8, errExceeded)
	assert.Equal(t, errExceeded, err)
}
