package unstructured

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/internal/testing/jsoncases"
)

// sample reads a file of testdata.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

// samples are the files of testdata that hold one JSON document each, by name.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(t, err)
	found := map[string][]byte{}
	for _, path := range paths {
		if name := filepath.Base(path); name != "watch.json" {
			found[name] = sample(t, name)
		}
	}
	require.NotEmpty(t, found)
	return found
}

// reference decodes an object by apimachinery.
func reference(data []byte) (map[string]any, error) {
	var obj unstructuredv1.Unstructured
	_, _, err := unstructuredv1.UnstructuredJSONScheme.Decode(data, nil, &obj)
	return obj.Object, err
}

// assertParity decodes data here and by apimachinery: both must reject it, or both return the same object.
func assertParity(t testing.TB, data []byte) {
	t.Helper()
	want, wantErr := reference(data)
	got, err := Decode(data)
	if wantErr != nil {
		assert.Error(t, err, "apimachinery: %v", wantErr)
		assert.Nil(t, got)
		return
	}
	if assert.NoError(t, err) {
		assertIdentical(t, want, got.Object)
	}
}

// assertIdentical is assert.Equal that also distinguishes 0.0 from -0.0.
func assertIdentical(t testing.TB, want, got any) {
	t.Helper()
	if !identical(want, got) {
		assert.Fail(t, "not identical", "want: %s\ngot:  %s", typed(want), typed(got))
	}
}

func identical(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for i := range a {
			if !identical(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for name := range a {
			if _, found := b[name]; !found || !identical(a[name], b[name]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(a, b)
	}
}

func typed(v any) string {
	text := fmt.Sprintf("%#v", v)
	return text[:min(len(text), 4096)]
}

var (
	nastyValues    = jsoncases.Values
	nastyDocuments = jsoncases.Documents
	nested         = jsoncases.Nested
	inObject       = jsoncases.InObject
	chunked        = jsoncases.Chunked
)
