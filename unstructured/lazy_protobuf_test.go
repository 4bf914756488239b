package unstructured

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/protobuf"
	"github.com/anykind/anykind/internal/testing/race"
)

// encodedObjects returns objects that generated code has encoded, by the name of their file, and the same objects decoded from JSON.
func encodedObjects(t testing.TB) (bodies map[string][]byte, objects map[string]*Object) {
	t.Helper()
	dir := filepath.Join("..", "internal", "protobuf", "testdata")
	paths, err := filepath.Glob(filepath.Join(dir, "*.pb"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	bodies = map[string][]byte{}
	objects = map[string]*Object{}
	for _, path := range paths {
		name := filepath.Base(path[:len(path)-len(".pb")])
		bodies[name], err = os.ReadFile(path)
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		require.NoError(t, err)
		objects[name], err = Decode(text)
		require.NoError(t, err)
	}
	return bodies, objects
}

func newLazyFromProtobuf(t testing.TB, body []byte) *Lazy {
	t.Helper()
	typeMeta, raw, err := protobuf.Envelope(body)
	require.NoError(t, err)
	message, found := protobuf.Lookup(schema.FromAPIVersionAndKind(typeMeta.APIVersion, typeMeta.Kind))
	require.True(t, found)
	l, err := protobuf.NewLazy(protobuf.NewDecoder(math.MaxInt64, nil), protobuf.Kind{Message: message, TypeMeta: typeMeta}, raw)
	require.NoError(t, err)
	return l.(*Lazy)
}

func TestLazy_ProtobufEqualsJSON(t *testing.T) {
	race.Skip(t)
	bodies, objects := encodedObjects(t)
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			want := objects[name]
			l := newLazyFromProtobuf(t, body)
			clear(body)
			assertLazyIs(t, want, l)
			assertGetParity(t, want, l, math.MaxInt)
			for _, path := range paths(want.Object, nil) {
				assertGetIs(t, want, l, path)
			}
			type target struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
				Spec              map[string]any `json:"spec"`
			}
			fromJSON, err := As[target](want)
			require.NoError(t, err)
			fromProtobuf, err := As[target](l)
			require.NoError(t, err)
			assert.Equal(t, fromJSON, fromProtobuf)
			whole, err := As[Object](l)
			require.NoError(t, err)
			assert.Equal(t, want, whole)
		})
	}
}

// paths returns the paths of all fields and items.
func paths(v any, path []string) (all [][]string) {
	path = slices.Clip(path)
	all = append(all, path)
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			all = append(all, paths(member, append(path, name))...)
		}
	case []any:
		for i, item := range v {
			all = append(all, paths(item, append(path, fmt.Sprint(i)))...)
		}
	}
	return all
}

func TestLazy_ProtobufMetadata(t *testing.T) {
	bodies, objects := encodedObjects(t)
	for name, body := range bodies {
		for _, of := range []metav1.TypeMeta{{Kind: "Pod", APIVersion: "v1"}, {Kind: "Widget", APIVersion: "example.com/v1"}} {
			l := newLazyFromProtobuf(t, body).Metadata(of)
			want := &Object{Object: map[string]any{"kind": of.Kind, "apiVersion": of.APIVersion, "metadata": objects[name].Object["metadata"]}}
			assertLazyIs(t, want, l)
			assertLazyIs(t, want, l.Metadata(of))
		}
	}
}

func TestLazy_ProtobufWithout(t *testing.T) {
	race.Skip(t)
	bodies, objects := encodedObjects(t)
	for name, body := range bodies {
		text, err := json.Marshal(objects[name].Object)
		require.NoError(t, err)
		same, err := DecodeLazy(text)
		require.NoError(t, err)
		l := newLazyFromProtobuf(t, body)
		for _, path := range append(paths(objects[name].Object, nil), []string{"missing"}, []string{"spec", "missing"}, []string{"metadata", "missing", "field"}, []string{"metadata", "generateName"}) {
			want, err := same.Without(path...).Object()
			require.NoError(t, err)
			got := l.Without(path...)
			assertLazyIs(t, want, got)
			if same.Without(path...) == same {
				assert.Same(t, l, got, "%q", path)
			}
		}
	}
	without := newLazyFromProtobuf(t, bodies["pod"]).Without("metadata", "managedFields")
	assert.True(t, without.isProtobuf())
	assert.Less(t, len(without.data), len(bodies["pod"])*3/4)
}

func TestNewLazy_Errors(t *testing.T) {
	pod, _ := protobuf.Lookup(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	d := protobuf.NewDecoder(math.MaxInt64, nil)
	_, err := protobuf.NewLazy(d, protobuf.Kind{Message: pod, TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}, nil)
	require.EqualError(t, err, "the message is of a different kind")
	_, err = protobuf.NewLazy(d, protobuf.Kind{Message: pod, TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, []byte{0xfa, 1, 0})
	var unknown *protobuf.UnknownFieldError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, protobuf.UnknownFieldError{Message: "core/v1.Pod", Number: 31, Cause: "is unknown"}, *unknown)
}

// BenchmarkNewLazy makes a lazy pod, of Protobuf and of JSON, as an item of a list.
func BenchmarkNewLazy(b *testing.B) {
	bodies, objects := encodedObjects(b)
	typeMeta, raw, err := protobuf.Envelope(bodies["pod"])
	require.NoError(b, err)
	text, err := Encode(objects["pod"])
	require.NoError(b, err)
	message, _ := protobuf.Lookup(objects["pod"].GroupVersionKind())
	kind := protobuf.Kind{Message: message, TypeMeta: typeMeta}
	d := protobuf.NewDecoder(math.MaxInt64, nil)
	bench(b, "Protobuf", len(raw), func() error {
		_, err := protobuf.NewLazy(d, kind, raw)
		return err
	})
	bench(b, "JSON", len(text), func() error {
		_, err := DecodeLazy(text)
		return err
	})
	l := newLazyFromProtobuf(b, bodies["pod"])
	bench(b, "phase of Protobuf", len(raw), func() error {
		_, _, err := Get[string](l, "status", "phase")
		return err
	})
	bench(b, "JSON of Protobuf", len(raw), func() error {
		_, err := l.MarshalJSON()
		return err
	})
}
