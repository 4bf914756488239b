package packed

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/race"
	"github.com/anykind/anykind/unstructured"
)

// packAll returns the packed objects, nil for one that is kept as it is.
func packAll(t testing.TB, p *packer[unstructured.Lazy], texts ...string) (all []*object[unstructured.Lazy]) {
	t.Helper()
	for _, text := range texts {
		obj, err := unstructured.DecodeLazy([]byte(text))
		require.NoError(t, err)
		packed, _ := p.Pack(obj).(*object[unstructured.Lazy])
		all = append(all, packed)
	}
	return all
}

func newLazyPacker() *packer[unstructured.Lazy] { return newPacker[unstructured.Lazy]() }

// similar returns objects of about 3 kB that differ by their names and UIDs alone.
func similar(kind string, count int) (texts []string) {
	for i := range count {
		texts = append(texts, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":"name-%d","uid":"uid-%d"},"spec":{"text":%q}}`, kind, i, i, strings.Repeat(kind, 500)))
	}
	return texts
}

func TestPacker_PacksSimilarObjectsSmall(t *testing.T) {
	all := packAll(t, newLazyPacker(), similar("Widget", 200)...)
	for i, o := range all {
		if i < minObjects {
			assert.True(t, o == nil, "object %d", i)
		} else if i > 2*minObjects {
			assert.Less(t, len(o.data), int(o.size)/20, "object %d", i)
		}
	}
}

func TestPacker_KeepsObjectsOfSmallCaches(t *testing.T) {
	p := newLazyPacker()
	for range 100 { // versions of the same objects
		for i, o := range packAll(t, p, similar("Widget", minObjects-1)...) {
			require.True(t, o == nil, "object %d", i)
		}
	}
	assert.Len(t, p.learner.samples, minObjects-1)
	var small []string
	for i := range 100 {
		small = append(small, fmt.Sprintf(`{"kind":"Lease","apiVersion":"v1","metadata":{"name":"name-%d","uid":"uid-%d"}}`, i, i))
	}
	for i, o := range packAll(t, newLazyPacker(), small...) {
		require.True(t, o == nil, "object %d takes less than a dictionary", i)
	}
}

func TestPacker_KeepsRandomData(t *testing.T) {
	p := newLazyPacker()
	for i, o := range packAll(t, p, secrets(t, minObjects+maxMisses, 6<<10)...) {
		assert.True(t, o == nil, "object %d", i)
	}
	require.True(t, p.learner.current == nil, "a dictionary is kept although it packs nothing")
	all := packAll(t, p, similar("Widget", maxMisses+2*minObjects+1)...)
	assert.True(t, all[maxMisses+minObjects/2] == nil)
	assert.True(t, all[len(all)-1] != nil, "no dictionary for other objects later")
	full := newPacker[unstructured.Object]()
	for _, text := range secrets(t, 100, 6<<10) {
		obj, err := unstructured.Decode([]byte(text))
		require.NoError(t, err)
		o, isObject := full.Pack(obj).(*object[unstructured.Object])
		require.True(t, isObject, "JSON takes less than an object")
		assert.LessOrEqual(t, len(o.data), len(text))
		got, err := o.Unpack()
		require.NoError(t, err)
		assert.Equal(t, obj, got)
	}
}

// secrets returns Secrets of random data.
func secrets(t testing.TB, count, size int) (texts []string) {
	t.Helper()
	for i := range count {
		random := make([]byte, size)
		_, err := rand.Read(random)
		require.NoError(t, err)
		texts = append(texts, fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s%d","uid":"u%d"},"data":{"a":%q}}`, i, i, base64.StdEncoding.EncodeToString(random)))
	}
	return texts
}

// TestPacker_DictionariesAreBounded packs objects whose shape changes for ever, of which one each stays.
func TestPacker_DictionariesAreBounded(t *testing.T) {
	race.Skip(t)
	p := newLazyPacker()
	var kept []*object[unstructured.Lazy]
	for range 80 {
		common := make([]byte, 3000)
		_, err := rand.Read(common)
		require.NoError(t, err)
		var texts []string
		for i := range 100 {
			texts = append(texts, fmt.Sprintf(`{"kind":"A","apiVersion":"v1","metadata":{"name":"n%d"},"c":%q}`, i, base64.StdEncoding.EncodeToString(common)))
		}
		for _, o := range packAll(t, p, texts...) {
			if o != nil {
				kept = append(kept, o)
				break
			}
		}
	}
	dictionaries := map[*dictionary]bool{}
	for _, o := range kept {
		dictionaries[o.dictionary] = true
		_, err := o.Unpack()
		require.NoError(t, err)
	}
	assert.Greater(t, len(dictionaries), 2)
	assert.LessOrEqual(t, len(dictionaries), maxDictionaries+1)
	assert.LessOrEqual(t, int(p.learner.alive.Load()), maxDictionaries)
	for d := range dictionaries {
		assert.LessOrEqual(t, len(d.content), maxDictionary)
		assert.True(t, d.encoder == nil || d == p.learner.current, "an old dictionary has its table")
	}
	assert.LessOrEqual(t, len(p.learner.samples), maxOutliers)
	runtime.KeepAlive(p)
}

func TestLearner_RenewsAfterDrift(t *testing.T) {
	p := newLazyPacker()
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
	all := packAll(t, newLazyPacker(), similar("Widget", 100)...)
	o := all[len(all)-1-recentObjects]
	require.True(t, o != nil)
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
	all := packAll(f, newLazyPacker(), similar("Widget", 100)...)
	for _, o := range all[len(all)-8:] {
		f.Add(o.data, o.size)
	}
	dictionary := all[len(all)-1].dictionary
	f.Fuzz(func(t *testing.T, data []byte, size uint32) {
		buffer := bytes.Repeat([]byte{0xaa}, int(size%(1<<20)))
		if dictionary.decompress(buffer, data) == nil {
			again := make([]byte, len(buffer))
			require.NoError(t, dictionary.decompress(again, data))
			assert.Equal(t, again, buffer, "bytes of the buffer are left")
		}
	})
}
