package unstructured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/testing/memconn"
)

// twentyEvents are the events of a watch, two of each object.
func twentyEvents() []byte {
	var b strings.Builder
	for n := range 20 {
		fmt.Fprintf(&b, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"u%d"},"a":[%d,{"é":"\n"}]}}`+"\n", n/2, n)
	}
	return []byte(b.String())
}

// eventsByStandard decodes a watch by encoding/json: the objects as JSON, and whether an error ends it.
func eventsByStandard(text []byte) (want []string, fails bool) {
	frames := json.NewDecoder(bytes.NewReader(text))
	for {
		var frame map[string]any
		err := frames.Decode(&frame)
		if err == io.EOF {
			return want, false
		}
		object, isObject := frame["object"].(map[string]any)
		kind, _ := object["kind"].(string)
		apiVersion, _ := object["apiVersion"].(string)
		known := []any{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}
		if err != nil || !isObject || kind == "" || strings.Count(apiVersion, "/") > 1 || !slices.Contains(known, frame["type"]) {
			return want, true
		}
		data, _ := json.Marshal(object)
		want = append(want, string(data))
	}
}

// readAllEvents reads a watch to its end, as objects, as JSON or interned.
func readAllEvents(r io.Reader, how string) (got []string, err error) {
	d := NewWatchDecoder(r)
	if how == "interned" {
		interner := jsonread.NewInterner()
		interner.MinDigested = 0
		d = NewWatchDecoder(interner.Source(r))
	}
	var kept []*Object // previous versions are found while somebody holds them
	for {
		var obj *Object
		if how == "lazy" {
			event, err := d.NextLazy()
			if err != nil {
				return got, err
			}
			if obj, err = event.Object.Object(); err != nil {
				return got, err
			}
		} else {
			event, err := d.Next()
			if err != nil {
				return got, err
			}
			obj = event.Object
		}
		kept = append(kept, obj)
		data, err := Encode(kept[len(kept)-1])
		if err != nil {
			return got, err
		}
		got = append(got, string(data))
	}
}

var errReset = errors.New("connection reset")

// TestWatchDecoder_EveryByteDamaged cuts, breaks and corrupts a watch of twenty events at every byte, or at each seventh.
func TestWatchDecoder_EveryByteDamaged(t *testing.T) {
	whole := twentyEvents()
	cases := 0
	check := func(name string, at int, text []byte, r func() io.Reader) {
		want, fails := eventsByStandard(text)
		for _, how := range []string{"objects", "lazy", "interned"} {
			cases++
			got, err := readAllEvents(r(), how)
			require.Equal(t, want, got, "%s at %d, %s: %v", name, at, how, err)
			switch {
			case name == "reset":
				require.ErrorIs(t, err, errReset, "%s at %d, %s", name, at, how)
			case !fails:
				require.Equal(t, io.EOF, err, "%s at %d, %s", name, at, how)
			case name == "cut":
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s at %d, %s", name, at, how)
			default:
				require.Error(t, err, "%s at %d, %s", name, at, how)
				require.NotEqual(t, io.EOF, err, "%s at %d, %s", name, at, how)
			}
		}
	}
	for at := 0; at <= len(whole); at += memconn.Step(7) {
		text := whole[:at]
		check("cut", at, text, func() io.Reader { return bytes.NewReader(text) })
		check("reset", at, text, func() io.Reader { return io.MultiReader(bytes.NewReader(text), brokenReader{}) })
		if at == len(whole) {
			break
		}
		for _, other := range []byte{whole[at] ^ 1, [...]byte{'"', whole[at] ^ 0x80, '}', ','}[at%4]} {
			text := bytes.Clone(whole)
			text[at] = other
			check(fmt.Sprintf("%q", other), at, text, func() io.Reader { return bytes.NewReader(text) })
		}
	}
	t.Logf("%d cases", cases)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errReset }

// TestDecode_EveryByteDamaged holds one object, damaged at every byte, or at each seventh, to encoding/json.
func TestDecode_EveryByteDamaged(t *testing.T) {
	whole := bytes.TrimSpace(twentyEvents())
	whole = whole[bytes.Index(whole, []byte(`{"kind"`)) : bytes.IndexByte(whole, '\n')-1]
	cases := 0
	for at := 0; at < len(whole); at += memconn.Step(7) {
		texts := [][]byte{whole[:at]}
		for other := range 256 {
			texts = append(texts, slices.Concat(whole[:at], []byte{byte(other)}, whole[at+1:]))
		}
		for _, text := range texts {
			cases++
			var want map[string]any
			invalid := json.Unmarshal(text, &want) != nil
			kind, _ := want["kind"].(string)
			apiVersion, _ := want["apiVersion"].(string)
			invalid = invalid || kind == "" || strings.Count(apiVersion, "/") > 1
			obj, err := Decode(text)
			lazy, lazyErr := DecodeLazy(text)
			require.Equal(t, invalid, err != nil, "%q: %v", text, err)
			require.Equal(t, fmt.Sprint(err), fmt.Sprint(lazyErr), "%q", text)
			if invalid {
				continue
			}
			written, err := Encode(obj)
			require.NoError(t, err)
			var got map[string]any
			require.NoError(t, json.Unmarshal(written, &got), "%q", text)
			assert.Equal(t, want, got, "%q", text)
			of, err := lazy.Object()
			require.NoError(t, err)
			assert.Equal(t, obj, of, "%q", text)
		}
	}
	t.Logf("%d cases", cases)
}
