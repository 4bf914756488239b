package cache

import (
	"math/rand/v2"
	"strconv"
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
	c := New[tagged](nil, &Options[tagged]{Indexes: map[string]func(*tagged) []string{
		"tag": func(obj *tagged) []string { return obj.tags },
	}})
	random := rand.New(rand.NewPCG(1, 2))
	held := map[types.NamespacedName]*tagged{}
	check := func() {
		byTag := map[string][]*tagged{}
		byNamespace := map[string][]*tagged{}
		for key, obj := range held {
			byNamespace[key.Namespace] = append(byNamespace[key.Namespace], obj)
			once := map[string]bool{}
			for _, tag := range obj.tags {
				if !once[tag] {
					byTag[tag] = append(byTag[tag], obj)
				}
				once[tag] = true
			}
		}
		for i := range 5 {
			name := strconv.Itoa(i)
			found, err := c.ByIndex("tag", name)
			require.NoError(t, err)
			require.ElementsMatch(t, byTag[name], found)
			require.ElementsMatch(t, byNamespace[name], c.List(name, nil))
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
		if random.IntN(3) == 0 {
			c.remove(key, update[tagged]{object: stored[tagged]{object: obj}, deleted: true})
			delete(held, key)
		} else {
			c.put(key, obj)
			held[key] = obj
		}
		if step%50 == 0 {
			check()
		}
	}
	check()
	for key := range held {
		c.remove(key, update[tagged]{deleted: true})
		delete(held, key)
	}
	check()
	assert.Empty(t, c.indexes["tag"])
	assert.Empty(t, c.objects)
}
