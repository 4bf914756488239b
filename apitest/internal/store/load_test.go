package store

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

func loadRecord(t *testing.T, name string, revision int64) Record {
	t.Helper()
	obj, err := unstructured.DecodeLazy(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop","resourceVersion":"%d"}}`, name, revision))
	require.NoError(t, err)
	return Record{Key{"", "configmaps", "shop", name}, revision, obj}
}

func versions(objects []Object) (all []string) {
	for _, obj := range objects {
		all = append(all, (&unstructured.Object{Object: obj}).GetName()+" "+Version(obj))
	}
	return all
}

func TestStore_Load(t *testing.T) {
	s := New(10)
	key := Key{"", "configmaps", "shop", "b"}
	_, err := s.Create(key, Object{"metadata": map[string]any{"name": "b"}})
	require.NoError(t, err)
	_, err = s.Create(Key{"", "configmaps", "shop", "gone"}, Object{"metadata": map[string]any{"name": "gone"}})
	require.NoError(t, err)
	_, err = s.Delete(Key{"", "configmaps", "shop", "gone"}, "", nil)
	require.NoError(t, err)
	require.NoError(t, s.Load([]Record{loadRecord(t, "c", 40), loadRecord(t, "b", 7), loadRecord(t, "a", 30)}, 50))
	assert.Equal(t, int64(50), s.Revision())
	assert.Equal(t, int64(50), s.Compacted())
	assert.Equal(t, 3, s.Len("", "configmaps"))
	assert.Len(t, s.Objects(), 3)
	page, err := s.Page(Query{Resource: "configmaps", Limit: 1, Count: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"a 30"}, versions(page.Objects()))
	assert.Equal(t, 2, page.Remaining)
	_, err = s.Watch("", "configmaps", "", 49)
	require.ErrorIs(t, err, ErrCompacted)
	w, err := s.Watch("", "configmaps", "", 50)
	require.NoError(t, err)
	changed, err := s.Update(key, "7", Object{"metadata": map[string]any{"name": "b", "labels": map[string]any{"a": "b"}}})
	require.NoError(t, err)
	assert.Equal(t, "51", Version(changed))
	events, _, _, err := w.Next(10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Equal(t, "7", Version(events[0].Previous))
	_, err = s.Delete(Key{"", "configmaps", "shop", "a"}, "30", nil)
	require.NoError(t, err)
	objects, _, err := s.List("", "configmaps", "", 50)
	require.NoError(t, err)
	assert.Equal(t, []string{"a 30", "b 7", "c 40"}, versions(objects))
	objects, _, err = s.List("", "configmaps", "", 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"b 51", "c 40"}, versions(objects))
	require.ErrorContains(t, s.Load([]Record{loadRecord(t, "x", 60), loadRecord(t, "x", 61)}, 61), "load ConfigMap shop/x: the object is there twice")
}

func TestStore_LoadManyObjects(t *testing.T) {
	s := New(10)
	var records []Record
	for i := range maxDecoded + 1 {
		records = append(records, loadRecord(t, strconv.Itoa(i), int64(i+10)))
	}
	require.NoError(t, s.Load(records, maxDecoded+10))
	require.NoError(t, s.Load([]Record{{Key{"", "secrets", "shop", "a"}, 5, records[0].Object}}, 0))
	isShared := func(key Key) bool {
		var objects [2]Object
		var group sync.WaitGroup
		first, found := s.Get(key)
		require.True(t, found)
		for i := range objects {
			group.Go(func() { objects[i], _ = s.Get(key) })
		}
		group.Wait()
		first["changed"] = true
		return objects[0]["changed"] == true && objects[1]["changed"] == true
	}
	assert.False(t, isShared(records[0].Key), "each read decodes the object")
	assert.True(t, isShared(Key{"", "secrets", "shop", "a"}), "the decoded object is kept")
}
