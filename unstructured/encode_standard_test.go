package unstructured

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/jsonread"
)

// assertEncodesAsStandard holds encoded against what encoding/json makes of obj.
func assertEncodesAsStandard(t testing.TB, obj *Object, encoded []byte) {
	t.Helper()
	var standard bytes.Buffer
	e := json.NewEncoder(&standard)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(obj.Object))
	want, err := reference(standard.Bytes())
	require.NoError(t, err)
	got, err := reference(encoded)
	require.NoError(t, err)
	assertIdentical(t, settled(want), settled(got))
	assertSorted(t, json.NewDecoder(bytes.NewReader(encoded)))
}

// assertSorted reads one value and checks the order of its fields, all the way down.
func assertSorted(t testing.TB, d *json.Decoder) {
	t.Helper()
	token, err := d.Token()
	require.NoError(t, err)
	switch token {
	case json.Delim('{'):
		var names []string
		for d.More() {
			name, err := d.Token()
			require.NoError(t, err)
			names = append(names, name.(string))
			assertSorted(t, d)
		}
		assert.True(t, slices.IsSorted(names), "%q", names)
		_, err = d.Token()
		require.NoError(t, err)
	case json.Delim('['):
		for d.More() {
			assertSorted(t, d)
		}
		_, err = d.Token()
		require.NoError(t, err)
	}
}

// settled is v as it is after a trip through JSON: a float64 without a fraction has become an int64.
func settled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, element := range v {
			out[name] = settled(element)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = settled(element)
		}
		return out
	case float64:
		text, _ := json.Marshal(v)
		n, _ := jsonread.ParseNumber(text)
		return n
	default:
		return v
	}
}

func TestEncode_EqualsEncodingJSON(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) {
			obj, err := Decode(data)
			require.NoError(t, err)
			encoded, err := Encode(obj)
			require.NoError(t, err)
			assertEncodesAsStandard(t, obj, encoded)
		})
	}
}

func TestEncode_RoundTrip(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) {
			obj, err := Decode(data)
			require.NoError(t, err)
			encoded, err := Encode(obj)
			require.NoError(t, err)
			again, err := Decode(encoded)
			require.NoError(t, err)
			assertIdentical(t, settled(obj.Object), again.Object)
		})
	}
}
