package packed_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/unstructured"
)

func decodeLazy(t *testing.T, data []byte) *unstructured.Lazy {
	t.Helper()
	obj, err := unstructured.DecodeLazy(data)
	require.NoError(t, err)
	return obj
}

// kept is an object that its packer keeps as it is.
type kept[T any] struct{ obj *T }

func (k kept[T]) Unpack() (*T, error) { return k.obj, nil }

func pack[T any](packer func(*T) cache.Packed[T], obj *T) cache.Packed[T] {
	if packed := packer(obj); packed != nil {
		return packed
	}
	return kept[T]{obj}
}

// widget returns an object whose fields other than its name depend on a shape.
func widget(shape, i int) []byte {
	spec := map[string]any{}
	random := rand.New(rand.NewPCG(uint64(shape), 0)) //nolint:gosec // repeatable
	for range 40 {
		spec[fmt.Sprintf("field%x", random.Uint64())] = fmt.Sprintf("value %x", random.Uint64())
	}
	data, _ := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": spec,
		"metadata": map[string]any{"name": fmt.Sprintf("widget-%d-%d", shape, i), "resourceVersion": fmt.Sprint(i)},
	})
	return data
}

func TestPacked_EqualsObject(t *testing.T) {
	lazy := packed.New[unstructured.Lazy]()
	full := packed.New[unstructured.Object]()
	typed := packed.New[metav1.PartialObjectMetadata]()
	type forms struct {
		json  []byte
		lazy  cache.Packed[unstructured.Lazy]
		full  cache.Packed[unstructured.Object]
		typed cache.Packed[metav1.PartialObjectMetadata]
	}
	var all []forms
	for i := range 300 {
		data := widget(i/150, i)
		obj, err := unstructured.Decode(data)
		require.NoError(t, err)
		meta, err := unstructured.As[metav1.PartialObjectMetadata](obj)
		require.NoError(t, err)
		all = append(all, forms{data, pack(lazy, decodeLazy(t, data)), pack(full, obj), pack(typed, meta)})
	}
	for _, forms := range all {
		obj, err := unstructured.Decode(forms.json)
		require.NoError(t, err)
		gotLazy, err := forms.lazy.Unpack()
		require.NoError(t, err)
		require.Equal(t, string(forms.json), string(gotLazy.JSON()))
		gotFull, err := forms.full.Unpack()
		require.NoError(t, err)
		require.Equal(t, obj, gotFull)
		gotTyped, err := forms.typed.Unpack()
		require.NoError(t, err)
		require.Equal(t, obj.GetName(), gotTyped.GetName())
	}
}

func TestPacked_CorpusRoundTrips(t *testing.T) {
	packer := packed.New[unstructured.Lazy]()
	var want []*unstructured.Lazy
	var all []cache.Packed[unstructured.Lazy]
	for _, file := range corpus.Objects(t, 1000) {
		obj, err := unstructured.DecodeLazy(file.JSON)
		require.NoError(t, err, file)
		want = append(want, obj)
		all = append(all, pack(packer, obj))
	}
	for i, packed := range all {
		got, err := packed.Unpack()
		require.NoError(t, err)
		require.Equal(t, string(want[i].JSON()), string(got.JSON()))
	}
}

// TestPacked_ReadsWhileDictionariesChange packs objects whose shapes change all the time, while others are read.
func TestPacked_ReadsWhileDictionariesChange(t *testing.T) {
	packer := packed.New[unstructured.Lazy]()
	var mu sync.Mutex
	var all []cache.Packed[unstructured.Lazy]
	var names []string
	var readers sync.WaitGroup
	done := make(chan struct{})
	for seed := range 2 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // repeatable
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				if len(all) == 0 {
					mu.Unlock()
					continue
				}
				i := random.IntN(len(all))
				object := all[i]
				name := names[i]
				mu.Unlock()
				got, err := object.Unpack()
				if assert.NoError(t, err) {
					assert.Equal(t, name, got.GetName())
				}
			}
		})
	}
	for shape := range 25 {
		for i := range 100 {
			obj := decodeLazy(t, widget(shape, i))
			object := pack(packer, obj)
			mu.Lock()
			all = append(all, object)
			names = append(names, obj.GetName())
			mu.Unlock()
		}
	}
	close(done)
	readers.Wait()
}

func TestPacker_WithoutJSONKeepsObject(t *testing.T) {
	type broken struct{ C chan int }
	assert.Nil(t, packed.New[broken]()(&broken{make(chan int)}))
}

// A Transform may drop kind and apiVersion. The decoders need both.
func TestPacker_WithoutTypeKeepsObject(t *testing.T) {
	packer, lazyPacker := packed.New[unstructured.Object](), packed.New[unstructured.Lazy]()
	for name, fields := range map[string]map[string]any{
		"no kind":             {"apiVersion": "v1"},
		"neither":             {},
		"malformed, no kind":  {"apiVersion": "a/b/c"},
		"malformed":           {"apiVersion": "a/b/c", "kind": "Widget"},
		"kind of other types": {"apiVersion": "v1", "kind": int64(1)},
	} {
		for i := range 50 {
			obj := &unstructured.Object{Object: maps.Clone(fields)}
			obj.SetName(fmt.Sprint(name, i))
			obj.Object["text"] = strings.Repeat("some text ", 200)
			assert.Nil(t, packer(obj), name)
			lazy, err := unstructured.As[unstructured.Lazy](obj)
			require.NoError(t, err)
			assert.Nil(t, lazyPacker(lazy), name)
		}
	}
}
