package unstructured

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/race"
)

func TestLazy_StringHasNoContents(t *testing.T) {
	secret, err := DecodeLazy([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"shop","name":"key"},"data":{"a":"aGlkZGVu"}}`))
	require.NoError(t, err)
	node, err := DecodeLazy([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}`))
	require.NoError(t, err)
	assert.Equal(t, "Secret shop/key, Node n1", fmt.Sprintf("%v, %s", secret, node))
}

func TestLazy_ZeroValueHasNoMetadata(t *testing.T) {
	zero := &Lazy{}
	assert.Empty(t, zero.GetName())
	assert.Empty(t, zero.GetLabels())
	assert.Empty(t, zero.GetAnnotations())
	assert.Empty(t, zero.GetOwnerReferences())
}

func TestGet_EscapedNames(t *testing.T) {
	data := []byte(`{"kind":"X","apiVersion":"v1","spec":{"C:\\\\dir":1,"a\nb":2,"\u0061":3,"é":4,"` + "\xff" + `":5,"x":"\\x"}}`)
	obj, err := Decode(data)
	require.NoError(t, err)
	lazy, err := DecodeLazy(data)
	require.NoError(t, err)
	for name, want := range map[string]any{
		`C:\\dir`: int64(1), "a\nb": int64(2), "a": int64(3), "é": int64(4), "\ufffd": int64(5),
		`C:\\\\dir`: nil, `a\nb`: nil, `\u0061`: nil, "\xff": nil, `\x`: nil,
	} {
		for of, get := range map[string]func() (any, bool, error){
			"Object": func() (any, bool, error) { return Get[any](obj, "spec", name) },
			"Lazy":   func() (any, bool, error) { return Get[any](lazy, "spec", name) },
		} {
			value, found, err := get()
			assert.NoError(t, err)
			assert.Equal(t, want, value, "%s %q", of, name)
			assert.Equal(t, want != nil, found, "%s %q", of, name)
		}
	}
}

func TestLazy_Metadata(t *testing.T) {
	for name, document := range lazyDocuments {
		if name == "kind twice, lost" || name == "apiVersion with escapes" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			lazy, err := DecodeLazy([]byte(document))
			require.NoError(t, err)
			obj, err := lazy.Object()
			require.NoError(t, err)
			want := &Object{Object: map[string]any{"kind": `P"od`, "apiVersion": "v1"}}
			if metadata, found := obj.Object["metadata"]; found {
				want.Object["metadata"] = metadata
			}
			assertLazyIs(t, want, lazy.Metadata(metav1.TypeMeta{Kind: `P"od`, APIVersion: "v1"}))
		})
	}
}

// fieldPaths returns the paths of all fields that are in maps in maps, and some of fields that do not exist.
func fieldPaths(m map[string]any) [][]string {
	paths := [][]string{{"none"}}
	for name, v := range m {
		paths = append(paths, []string{name}, []string{name, "none"})
		if fields, isMap := v.(map[string]any); isMap {
			for _, path := range fieldPaths(fields) {
				paths = append(paths, append([]string{name}, path...))
			}
		}
	}
	return paths
}

// assertWithout compares what a Lazy is without each of its fields with what Delete leaves of the object.
func assertWithout(t testing.TB, l *Lazy) {
	t.Helper()
	obj, err := l.Object()
	require.NoError(t, err)
	for _, path := range fieldPaths(obj.Object) {
		want := obj.DeepCopy()
		parent, _, _ := walk(want.Object, path[:len(path)-1], 0)
		found := false
		if fields, isMap := parent.(map[string]any); isMap {
			_, found = fields[path[len(path)-1]]
			delete(fields, path[len(path)-1])
		}
		got := l.Without(path...)
		assertLazyIs(t, want, got)
		assert.Equal(t, !found, got == l, "%q", path)
	}
}

func TestLazy_Without(t *testing.T) {
	race.Skip(t)
	documents := map[string][]byte{}
	for name, document := range lazyDocuments {
		documents[name] = []byte(document)
	}
	for name, data := range samples(t) {
		documents[name] = data
	}
	documents["names with escapes, twice"] = []byte(`{"kind":"A","a":{ "b" : 1 , "c":2,"\u0062":3 },"b":{"b":1,"b":2},"c":{"b":1,"c":1,"b":2,"b":3}}`)
	for name, data := range documents {
		if name == "kind twice, lost" || name == "apiVersion with escapes" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l, err := DecodeLazy(data)
			require.NoError(t, err)
			assertWithout(t, l)
			assert.Same(t, l, l.Without())
		})
	}
	assert.Nil(t, (*Lazy)(nil).Without("a"))
	assert.Equal(t, &Lazy{}, new(Lazy).Without("a"))
}
