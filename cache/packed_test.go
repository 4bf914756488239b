package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

// copyingPacker packs an object into a copy of it, and fails to unpack once it is broken. It keeps objects named "plain".
type copyingPacker struct{ broken atomic.Bool }

func (c *copyingPacker) Pack(obj *object) cache.Packed[object] {
	if obj.GetName() == "plain" {
		return nil
	}
	return &packedCopy{c, obj.DeepCopy()}
}

type packedCopy struct {
	packer *copyingPacker
	obj    *object
}

var errBroken = errors.New("broken")

func (p *packedCopy) Unpack() (*object, error) {
	if p.packer.broken.Load() {
		return nil, errBroken
	}
	return p.obj.DeepCopy(), nil
}

func emitPods(source *script) {
	source.emit(dynamic.Started, nil)
	source.emit(watch.Added, pod("shop", "web", "web", 1))
	source.emit(watch.Added, pod("shop", "plain", "plain", 2))
	source.emit(watch.Added, pod("home", "db", "db", 3))
	source.emit(dynamic.Synced, nil)
}

func TestCache_PackReadsEqual(t *testing.T) {
	c, source := running(t, &cache.Options[object]{
		Pack: (&copyingPacker{}).Pack, Indexes: map[string]func(*object) []string{"app": cache.IndexByLabel[object]("app")},
	})
	emitPods(source)
	require.NoError(t, c.WaitForSync(t.Context()))
	obj, found := c.Get("shop", "web")
	require.True(t, found)
	assert.Equal(t, pod("shop", "web", "web", 1), obj)
	_, found = c.Get("shop", "none")
	assert.False(t, found)
	assert.Equal(t, []string{"home/db", "shop/plain", "shop/web"}, names(c.List("", nil)))
	assert.Equal(t, []string{"shop/plain", "shop/web"}, names(c.List("shop", labels.Everything())))
	for text, want := range map[string][]string{
		"app=web": {"shop/web"}, "app!=web": {"home/db", "shop/plain"}, "app in (plain,db)": {"home/db", "shop/plain"}, "!app": {}, "app": {"home/db", "shop/plain", "shop/web"},
	} {
		selector, err := labels.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, want, names(c.List("", selector)), text)
	}
	indexed, err := c.ByIndex("app", "db")
	require.NoError(t, err)
	assert.Equal(t, []string{"home/db"}, names(indexed))
}

func TestCache_PackDeliversChanges(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Pack: (&copyingPacker{}).Pack})
	emitPods(source)
	var got []string
	for change := range c.Changes(t.Context()) {
		text := string(change.Type)
		for _, obj := range []*object{change.Object, change.Old} {
			if obj != nil {
				text += fmt.Sprintf(" %s/%s", obj.GetName(), obj.GetResourceVersion())
			}
		}
		got = append(got, text)
		switch len(got) {
		case 4:
			source.emit(watch.Modified, pod("shop", "web", "web", 5))
		case 5:
			replaced := pod("shop", "web", "web", 6)
			replaced.SetUID("another")
			source.emit(watch.Modified, replaced)
		case 7:
			source.emit(watch.Deleted, pod("home", "db", "db", 7))
		case 8:
			source.emitUnknownDelete(pod("shop", "plain", "", 2))
		}
		if len(got) == 9 {
			break
		}
	}
	assert.ElementsMatch(t, []string{"ADDED db/3", "ADDED plain/2", "ADDED web/1", "SYNCED"}, got[:4])
	assert.Equal(t, []string{
		"MODIFIED web/5 web/1", "DELETED web/5 web/5", "ADDED web/6", "DELETED db/7 db/3", "DELETED plain/2 plain/2",
	}, got[4:])
}

func TestCache_PackFailureEndsRun(t *testing.T) {
	packer := &copyingPacker{}
	source := newScript()
	c := cache.New(source, &cache.Options[object]{Pack: packer.Pack})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context()) }()
	emitPods(source)
	packer.broken.Store(true)
	_, found := c.Get("shop", "web")
	assert.False(t, found)
	var failed *cache.UnpackError
	err := <-ended
	require.ErrorAs(t, err, &failed)
	assert.ErrorIs(t, err, errBroken)
	assert.Equal(t, "cache /api/v1/pods: unpack an object: broken", err.Error())
	assert.ErrorIs(t, c.Health(), errBroken)
}

func TestCache_AllUnpacksOnDemand(t *testing.T) {
	packer := &copyingPacker{}
	c, source := running(t, &cache.Options[object]{Pack: packer.Pack})
	emitPods(source)
	require.NoError(t, c.WaitForSync(t.Context()))
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	for name, test := range map[string]struct {
		namespace string
		selector  labels.Selector
		want      []string
	}{
		"all":            {"", nil, []string{"home/db", "shop/plain", "shop/web"}},
		"everything":     {"", labels.Everything(), []string{"home/db", "shop/plain", "shop/web"}},
		"namespace":      {"shop", nil, []string{"shop/plain", "shop/web"}},
		"selector":       {"", selector, []string{"shop/web"}},
		"both, no match": {"home", selector, nil},
		"no namespace":   {"none", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			for entry := range c.All(test.namespace, test.selector) {
				found = append(found, entry.String())
				obj := entry.Object()
				require.NotNil(t, obj)
				assert.Equal(t, obj.GetName(), entry.Name)
				assert.Equal(t, obj.GetNamespace(), entry.Namespace)
				assert.Equal(t, obj.GetUID(), entry.UID())
				assert.Equal(t, obj.GetResourceVersion(), entry.ResourceVersion())
				assert.Equal(t, obj.GetLabels()["app"], entry.Labels().Get("app"))
			}
			slices.Sort(found)
			assert.Equal(t, test.want, found)
		})
	}
	packer.broken.Store(true)
	for entry := range c.All("", selector) { // reads no object
		assert.Equal(t, "web", entry.Name)
		assert.Nil(t, entry.Object())
		break
	}
}
