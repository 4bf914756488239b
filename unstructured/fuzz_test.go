package unstructured

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addDocuments seeds a fuzz test with every input that the other tests are about.
func addDocuments(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
	}
	for _, value := range nastyValues {
		// The fuzzer would waste its time on mutating long ones.
		if len(value) < 1000 {
			f.Add(inObject(value))
		}
	}
	for _, document := range nastyDocuments {
		f.Add([]byte(document))
	}
}

func FuzzDecode(f *testing.F) {
	addDocuments(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		assertParity(t, data)
		assert.Equal(t, before, data, "the input was written to")
	})
}

func FuzzListDecoder(f *testing.F) {
	addDocuments(f)
	for _, list := range oddLists {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		assertListParity(t, data)
		want, wantErr := readList(NewListDecoder(bytes.NewReader(data)))
		for _, r := range chunked(data) {
			got, err := readList(NewListDecoder(r))
			assert.Equal(t, want, got)
			assert.Equal(t, text(wantErr), text(err))
		}
		// Without its last brace no list is whole.
		if wantErr == io.EOF {
			whole := bytes.TrimRight(data, " \t\r\n")
			_, err := readList(NewListDecoder(bytes.NewReader(whole[:len(whole)-1])))
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
	})
}

// addFrames seeds a fuzz test of watches likewise.
func addFrames(f *testing.F) {
	f.Add(sample(f, "watch.json"))
	for _, data := range samples(f) {
		f.Add(append(append([]byte(`{"type":"ADDED","object":`), data...), '}'))
	}
	for _, value := range nastyValues {
		if len(value) < 1000 {
			f.Add(append(append([]byte(`{"object":`), inObject(value)...), `,"type":"DELETED"}`...))
		}
	}
	for _, frames := range oddFrames {
		f.Add([]byte(frames))
	}
}

func FuzzWatchDecoder(f *testing.F) {
	addFrames(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := readEvents(NewWatchDecoder(bytes.NewReader(data)))
		assertWatchParity(t, data, want, wantErr)
		for _, r := range chunked(data) {
			got, err := readEvents(NewWatchDecoder(r))
			assert.Equal(t, want, got)
			assert.Equal(t, text(wantErr), text(err))
		}
	})
}

// FuzzLazy reads the input as an object, a list and a watch.
func FuzzLazy(f *testing.F) {
	addDocuments(f)
	f.Add(sample(f, "watch.json"))
	for _, documents := range []map[string]string{lazyDocuments, oddLists, oddFrames} {
		for _, document := range documents {
			f.Add([]byte(document))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		assertLazyParity(t, data)
		if l, err := DecodeLazy(data); err == nil && len(data) < 1000 {
			assertWithout(t, l)
		}
		assertLazyListParity(t, data)
		assertLazyWatchParity(t, data)
		assert.Equal(t, before, data, "the input was written to")
	})
}

// FuzzGet reads a path of both; the fields are separated by slashes.
func FuzzGet(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data, "metadata/name")
		f.Add(data, "spec/containers/0/image")
	}
	for _, document := range lazyDocuments {
		f.Add([]byte(document), "metadata/labels/a")
		f.Add([]byte(document), "list/1")
	}
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		obj, err := Decode(data)
		if err != nil {
			return
		}
		l, err := DecodeLazy(data)
		require.NoError(t, err)
		assertGetIs(t, obj, l, strings.Split(path, "/"))
	})
}

func FuzzEncodeRoundTrip(f *testing.F) {
	addDocuments(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := Decode(data)
		if err != nil {
			return
		}
		before := obj.DeepCopy()
		encoded, err := Encode(obj)
		require.NoError(t, err)
		assert.Equal(t, before, obj, "the object was written to")
		assertEncodesAsStandard(t, obj, encoded)
		again, err := Decode(encoded)
		require.NoError(t, err)
		assertIdentical(t, settled(obj.Object), again.Object)
		encodedAgain, err := Encode(again)
		require.NoError(t, err)
		third, err := Decode(encodedAgain)
		require.NoError(t, err)
		assertIdentical(t, again.Object, third.Object)
		if !bytes.Contains(encoded, []byte("-0")) { // -0.0 becomes 0
			assert.Equal(t, string(encoded), string(encodedAgain))
		}
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF.Error()
	}
	return err.Error()
}
