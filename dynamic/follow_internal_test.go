package dynamic

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/unstructured"
)

// TestReflector_SharesStringsOfEmittedObjects has an object that a relist returns unchanged, which is dropped, and then changed.
func TestReflector_SharesStringsOfEmittedObjects(t *testing.T) {
	var emitted []*unstructured.Object
	versions := objectVersions{}
	f := &reflector{state: stateSynced, known: versions, emitted: versions, yield: func(_ watch.EventType, obj item, _ bool) bool {
		emitted = append(emitted, obj.object)
		return true
	}}
	received := func(version string) *unstructured.Object {
		obj := &unstructured.Object{Object: map[string]any{}}
		obj.SetNamespace(strings.Clone("shop"))
		obj.SetName(strings.Clone("web"))
		obj.SetUID(types.UID(strings.Clone("9fa2138a")))
		obj.SetResourceVersion(strings.Clone(version))
		require.NoError(t, f.handleEvent(newObjectEvent(watch.Added, item{object: obj})))
		return obj
	}
	assertShares := func(obj *unstructured.Object) {
		t.Helper()
		require.Len(t, versions, 1)
		for key, version := range versions {
			for _, texts := range [][2]string{
				{obj.GetName(), key.name}, {string(obj.GetUID()), string(version.uid)}, {obj.GetResourceVersion(), version.resourceVersion},
			} {
				assert.Equal(t, texts[0], texts[1])
				assert.Same(t, unsafe.StringData(texts[0]), unsafe.StringData(texts[1]), texts[0])
			}
		}
	}
	first := received("1")
	assertShares(first)
	f.beginRelist()
	received("1")
	assert.Empty(t, f.missing)
	assertShares(first)
	third := received("2")
	assertShares(third)
	assert.Equal(t, []*unstructured.Object{first, third}, emitted)
}
