package cache

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tagged is found under each of its tags, which may be there twice.
type tagged struct {
	metav1.ObjectMeta
	tags []string
}

func TestIndex_AgreesWithMap(t *testing.T) {
	shared := NewSharedIndex("any", func(obj *tagged) []string { return obj.tags })
	caches := make([]*Cache[tagged], 2)
	for i := range caches {
		caches[i] = New[tagged](nil, &Options[tagged]{
			Indexes:       map[string]func(*tagged) []string{"tag": func(obj *tagged) []string { return obj.tags }},
			SharedIndexes: []*SharedIndex[tagged]{shared},
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	held := []map[types.NamespacedName]*tagged{{}, {}}
	check := func() {
		sharedByTag := map[string][]*tagged{}
		for i, c := range caches {
			byTag := map[string][]*tagged{}
			byNamespace := map[string][]*tagged{}
			require.Equal(t, len(held[i]), c.Len())
			for key, obj := range held[i] {
				byNamespace[key.Namespace] = append(byNamespace[key.Namespace], obj)
				tags := slices.Compact(slices.Sorted(slices.Values(obj.tags)))
				for _, tag := range tags {
					byTag[tag] = append(byTag[tag], obj)
					sharedByTag[tag] = append(sharedByTag[tag], obj)
				}
				entry, found := c.Entry(key.Namespace, key.Name)
				require.True(t, found)
				require.Equal(t, c, entry.Cache())
				require.ElementsMatch(t, tags, slices.Collect(entry.IndexValues("any")))
				require.ElementsMatch(t, tags, slices.Collect(entry.IndexValues("tag")))
			}
			for i := range 5 {
				name := strconv.Itoa(i)
				found, err := c.ByIndex("tag", name)
				require.NoError(t, err)
				require.ElementsMatch(t, byTag[name], found)
				require.ElementsMatch(t, byNamespace[name], c.List(name, nil))
			}
		}
		for i := range 5 {
			var found []*tagged
			for entry := range shared.Entries(strconv.Itoa(i)) {
				found = append(found, entry.Object())
			}
			require.ElementsMatch(t, sharedByTag[strconv.Itoa(i)], found)
		}
	}
	for step := range 3000 {
		obj := &tagged{ObjectMeta: metav1.ObjectMeta{
			Namespace: strconv.Itoa(random.IntN(5)), Name: strconv.Itoa(random.IntN(100)), UID: types.UID(strconv.Itoa(step)),
		}}
		for range random.IntN(4) {
			obj.tags = append(obj.tags, strconv.Itoa(random.IntN(5)))
		}
		key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
		i := random.IntN(len(caches))
		if random.IntN(3) == 0 {
			caches[i].remove(key, update[tagged]{object: stored[tagged]{object: obj}, deleted: true})
			delete(held[i], key)
		} else {
			caches[i].put(key, obj)
			held[i][key] = obj
		}
		if step%300 == 0 {
			check()
		}
	}
	check()
	for i, c := range caches {
		for key := range held[i] {
			c.remove(key, update[tagged]{deleted: true})
			delete(held[i], key)
		}
		assert.Empty(t, c.index("tag").buckets)
		assert.Empty(t, c.objects)
	}
	check()
	assert.Empty(t, shared.buckets)
}

// TestSharedIndex_ConcurrentCaches changes two caches and reads their index at the same time, for the race detector.
func TestSharedIndex_ConcurrentCaches(t *testing.T) {
	shared := NewSharedIndex("tag", func(obj *tagged) []string { return obj.tags })
	var all sync.WaitGroup
	for range 2 {
		c := New[tagged](nil, &Options[tagged]{SharedIndexes: []*SharedIndex[tagged]{shared}})
		all.Go(func() {
			for step := range 2000 {
				obj := &tagged{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(step % 10)}, tags: []string{strconv.Itoa(step % 3)}}
				c.put(types.NamespacedName{Name: obj.Name}, obj)
				if step%2 == 0 {
					c.remove(types.NamespacedName{Name: obj.Name}, update[tagged]{deleted: true})
				}
			}
		})
	}
	all.Go(func() {
		for range 2000 {
			for entry := range shared.Entries("1") {
				assert.Equal(t, []string{"1"}, slices.Collect(entry.IndexValues("tag")))
				assert.Equal(t, []string{"1"}, entry.Object().tags)
			}
		}
	})
	all.Wait()
}
