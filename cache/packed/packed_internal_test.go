package packed

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func packAll(t testing.TB, p *packer[unstructured.Lazy], texts ...string) (all []*object[unstructured.Lazy]) {
	t.Helper()
	for _, text := range texts {
		obj, err := unstructured.DecodeLazy([]byte(text))
		require.NoError(t, err)
		packed, isObject := p.Pack(obj).(*object[unstructured.Lazy])
		require.True(t, isObject)
		all = append(all, packed)
	}
	return all
}

func newPacker() *packer[unstructured.Lazy] {
	p, _ := New[unstructured.Lazy]().NewPacker().(*packer[unstructured.Lazy])
	return p
}

// similar returns objects that differ by their names alone.
func similar(kind string, count int) (texts []string) {
	for i := range count {
		texts = append(texts, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":"name-%d"},"spec":{"text":%q}}`, kind, i, strings.Repeat(kind, 40)))
	}
	return texts
}

func TestPacker_PacksSimilarObjectsSmall(t *testing.T) {
	all := packAll(t, newPacker(), similar("Widget", 200)...)
	for i, o := range all {
		if i < minObjects {
			assert.True(t, o.dictionary == nil, "object %d", i)
		} else {
			assert.Less(t, len(o.data), int(o.size)/4, "object %d", i)
		}
	}
}

func TestPacker_KeepsRandomDataAsJSON(t *testing.T) {
	var texts []string
	for i := range 100 {
		random := make([]byte, 4096)
		_, err := rand.Read(random)
		require.NoError(t, err)
		data := make([]string, 0, 4)
		for _, part := range []string{"a", "b"} {
			data = append(data, fmt.Sprintf("%q:%q", part, base64.StdEncoding.EncodeToString(random)+part))
		}
		texts = append(texts, fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s%d"},"data":{%s}}`, i, strings.Join(data[:1], ",")))
	}
	for i, o := range packAll(t, newPacker(), texts...) {
		assert.LessOrEqual(t, len(o.data), len(texts[i]))
	}
}

// TestPacker_DictionariesAreBounded packs objects whose shape changes for ever, of which one each stays.
func TestPacker_DictionariesAreBounded(t *testing.T) {
	p := newPacker()
	var kept []*object[unstructured.Lazy]
	for shape := range 40 {
		var texts []string
		for i := range 200 {
			random := make([]byte, 1500)
			_, err := rand.Read(random)
			require.NoError(t, err)
			common := strings.Repeat(fmt.Sprintf("shape %d ", shape), 20)
			texts = append(texts, fmt.Sprintf(`{"kind":"A","apiVersion":"v1","metadata":{"name":"n%d"},"c":%q,"r":%q}`, i, common, base64.StdEncoding.EncodeToString(random[:100+shape*30])))
		}
		kept = append(kept, packAll(t, p, texts...)[len(texts)-1])
	}
	dictionaries := map[*dictionary]bool{}
	for _, o := range kept {
		dictionaries[o.dictionary] = true
		_, err := o.Unpack()
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(dictionaries), maxDictionaries+1)
	assert.LessOrEqual(t, int(p.learner.alive.Load()), maxDictionaries)
	runtime.KeepAlive(p)
}

func TestLearner_RenewsAfterDrift(t *testing.T) {
	p := newPacker()
	packAll(t, p, similar("Widget", 200)...)
	first := p.learner.current
	require.True(t, first != nil)
	var last []*object[unstructured.Lazy]
	for range 30 {
		var texts []string
		for i := range 100 {
			texts = append(texts, fmt.Sprintf(`{"kind":"Gadget","apiVersion":"v1","metadata":{"name":"g%d"},"status":{"long":%q}}`, i, strings.Repeat("0123456789abcdef~", 20)+
				"the quick brown fox jumps over the lazy dog, then sleeps under a tree until the evening comes and the owls begin to call"+strings.Repeat("zyxwvut", 9)))
		}
		last = packAll(t, p, texts...)
	}
	assert.True(t, first != p.learner.current, "the dictionary is renewed")
	assert.Less(t, len(last[0].data), int(last[0].size)/5)
}

func TestObject_UnpackCorruptData(t *testing.T) {
	all := packAll(t, newPacker(), similar("Widget", 100)...)
	o := all[len(all)-1-recentObjects]
	require.True(t, o.dictionary != nil)
	for i := range o.data {
		for _, bit := range []byte{1, 128} {
			damaged := &object[unstructured.Lazy]{shared: o.shared, dictionary: o.dictionary, data: []byte(string(o.data)), size: o.size, slot: o.slot}
			damaged.data[i] ^= bit
			obj, err := damaged.Unpack()
			assert.True(t, (obj == nil) == (err != nil), "byte %d", i)
		}
	}
}

func FuzzObject_Unpack(f *testing.F) {
	all := packAll(f, newPacker(), similar("Widget", 100)...)
	for _, o := range all[minObjects:] {
		f.Add(o.data, o.size)
	}
	dictionary := all[len(all)-1].dictionary
	f.Fuzz(func(t *testing.T, data []byte, size uint32) {
		decompressed, err := dictionary.decompress(data, int(size%(1<<20)))
		if err == nil {
			assert.Len(t, decompressed, int(size%(1<<20)))
		}
	})
}
