package unstructured

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDecode_EqualsApimachinery(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(data)
			require.NoError(t, err)
			assertParity(t, data)
		})
	}
}

func TestDecode_NastyValues(t *testing.T) {
	for name, value := range nastyValues {
		t.Run(name, func(t *testing.T) { assertParity(t, inObject(value)) })
	}
}

func TestDecode_NastyDocuments(t *testing.T) {
	for name, document := range nastyDocuments {
		t.Run(name, func(t *testing.T) { assertParity(t, []byte(document)) })
	}
}

// Each byte value at each kind of place: outside tokens, in a string, in a number, in an escape sequence.
func TestDecode_EveryByte(t *testing.T) {
	for b := range 256 {
		c := string([]byte{byte(b)})
		for _, value := range []string{c + "1", "1" + c, `"` + c + `"`, `"1234567` + c + `1234567"`, `"\` + c + `"`, `"\u00` + c + `0"`, `{"` + c + `":1}`, `{"a"` + c + `1}`, "tru" + c} {
			assertParity(t, inObject(value))
		}
	}
}

func TestDecode_CutInput(t *testing.T) {
	for name, data := range samples(t) {
		for i := range bytes.TrimSpace(data) {
			_, err := Decode(data[:i])
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s cut at byte %d", name, i)
		}
	}
	for _, name := range []string{"widget.json", "secret.json"} {
		for i, data := 0, sample(t, name); i < len(data); i++ {
			assertParity(t, data[:i])
		}
	}
}

func TestDecode_Numbers(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "-0": int64(0), "1.0": 1.0, "1e3": 1000.0, "9223372036854775807": int64(9223372036854775807),
		"9223372036854775808": 9223372036854775808.0, "-9223372036854775808": int64(-9223372036854775808),
	} {
		obj, err := Decode(inObject(text))
		require.NoError(t, err)
		assert.Equal(t, want, obj.Object["value"], text)
	}
}

func TestDecode_MissingKind(t *testing.T) {
	for _, data := range []string{`{}`, `{"apiVersion":"v1"}`, `{"kind":1}`, `{"kind":"","metadata":{"name":"a"}}`} {
		_, wantErr := reference([]byte(data))
		require.True(t, runtime.IsMissingKind(wantErr), data)
		_, err := Decode([]byte(data))
		assert.True(t, runtime.IsMissingKind(err), data)
	}
}

// apimachinery reports a missing kind, which is not the fault.
func TestDecode_MalformedAPIVersion(t *testing.T) {
	data := []byte(`{"apiVersion":"a/b/c","kind":"Thing"}`)
	_, wantErr := reference(data)
	require.True(t, runtime.IsMissingKind(wantErr))
	_, err := Decode(data)
	assert.False(t, runtime.IsMissingKind(err))
	assert.ErrorContains(t, err, "invalid apiVersion")
	assert.ErrorContains(t, err, "a/b/c")
}

// apimachinery puts all of the input into its error.
func TestDecode_ErrorHasNoContents(t *testing.T) {
	data := []byte(`{"apiVersion":"v1","metadata":{"name":"db"},"data":{"password":"aHVudGVyMg=="}}`)
	_, err := Decode(data)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "aHVudGVyMg==")
	assert.Contains(t, err.Error(), `"db"`)
}

// apimachinery's scheme decodes what has items to an UnstructuredList, unless the caller passes an object.
func TestDecode_List(t *testing.T) {
	obj, err := Decode(sample(t, "podlist.json"))
	require.NoError(t, err)
	assert.True(t, obj.IsList())
	items, found, err := Get[[]any](obj, "items")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Len(t, items, 4)
}

func TestDecode_Errors(t *testing.T) {
	for data, want := range map[string]string{
		`{"kind":"A",}`:        `invalid JSON at byte 12: '}' where a member's name should begin`,
		`{"kind":"A"`:          `JSON input ends early, after byte 11: unexpected EOF`,
		`{"kind":"A"} x`:       `invalid JSON at byte 13: 'x' behind the object`,
		`[]`:                   `invalid JSON at byte 0: '[' where an object should begin`,
		`{"kind":01}`:          `invalid JSON at byte 8: "01" is not a number`,
		`{"kind":1e999}`:       `invalid JSON at byte 8: "1e999" is too large a number`,
		`{"kind":nope}`:        `invalid JSON at byte 8: "nope" is not null`,
		`{"kind":"\q"}`:        `invalid JSON at byte 9: escape sequence "\\q"`,
		"{\"kind\":\"a\x01\"}": `invalid JSON at byte 10: control character '\x01' in a string`,
		`{"kind" "A"}`:         `invalid JSON at byte 8: '"' behind a member's name`,
		`{"kind":[1 2]}`:       `invalid JSON at byte 11: '2' behind a list's element`,
		`{"kind":"A" "b"}`:     `invalid JSON at byte 12: '"' behind an object's member`,
		`{"kind":x}`:           `invalid JSON at byte 8: 'x' where a value should begin`,
	} {
		_, err := Decode([]byte(data))
		assert.EqualError(t, err, want, data)
	}
}

func TestDecode_DoesNotRetainInput(t *testing.T) {
	data := sample(t, "configmap.json")
	obj, err := Decode(data)
	require.NoError(t, err)
	want := obj.DeepCopy()
	clear(data)
	assert.Equal(t, want, obj)
}
