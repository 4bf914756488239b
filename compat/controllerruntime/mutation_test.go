package controllerruntime

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/client"
)

const equalConfigMaps = 20

// createEqualConfigMaps creates config maps that differ in their names only.
func createEqualConfigMaps(t *testing.T, from *Constructors) (namespace string) {
	t.Helper()
	namespace = client.NewNamespace(t, from.client)
	writer, err := from.NewClient(nil, ctrlclient.Options{})
	require.NoError(t, err)
	for i := range equalConfigMaps {
		require.NoError(t, writer.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("map-", i), Labels: map[string]string{"app": "equal"}},
		}))
	}
	return namespace
}

// mutateInformer runs an informer of a cache and changes a label of one of its objects. It returns the number of objects that show the
// change, and the value with which the informer's Run panicked.
func mutateInformer(t *testing.T, from *Constructors, namespace string, obj ctrlclient.Object, transform toolscache.TransformFunc) (int, any) {
	t.Helper()
	c, err := from.NewCache(nil, ctrlcache.Options{
		DefaultNamespaces: map[string]ctrlcache.Config{namespace: {}}, DefaultTransform: transform,
	})
	require.NoError(t, err)
	_, err = c.GetInformer(t.Context(), obj, ctrlcache.BlockUntilSynced(false))
	require.NoError(t, err)
	informers := c.(*informerCache).find(kindForm{configMaps, formOf(obj)})
	require.Len(t, informers, 1)
	ctx, cancel := context.WithCancel(t.Context())
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		informers[0].RunWithContext(ctx)
	}()
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), informers[0].HasSynced))

	stored, found, err := informers[0].GetStore().GetByKey(namespace + "/map-7")
	require.NoError(t, err)
	require.True(t, found)
	switch stored := stored.(type) {
	case *unstructuredv1.Unstructured:
		require.NoError(t, unstructuredv1.SetNestedField(stored.Object, "changed", "metadata", "labels", "app"))
	case metav1.Object:
		stored.GetLabels()["app"] = "changed"
	}
	changed := 0
	for _, stored := range informers[0].GetStore().List() {
		if stored.(ctrlclient.Object).GetLabels()["app"] == "changed" {
			changed++
		}
	}
	cancel()
	return changed, <-panicked
}

var mutatedForms = map[string]ctrlclient.Object{
	"typed": &corev1.ConfigMap{}, "unstructured": untyped(configMaps, "", ""), "metadata": metadataOf(configMaps, "", ""),
}

func unchanged(obj any) (any, error) { return obj, nil }

func TestCache_MutationStaysInObject(t *testing.T) {
	from := New(t.Context(), client.Connect(t, "admin"))
	namespace := createEqualConfigMaps(t, from)
	for form, obj := range mutatedForms {
		for name, transform := range map[string]toolscache.TransformFunc{"no transform": nil, "transform": unchanged} {
			t.Run(form+", "+name, func(t *testing.T) {
				changed, panicked := mutateInformer(t, from, namespace, obj, transform)
				assert.Equal(t, 1, changed)
				assert.Nil(t, panicked)
			})
		}
	}
}

func TestConstructors_InternSharesParts(t *testing.T) {
	from := New(t.Context(), client.Connect(t, "admin"))
	from.Intern = true
	namespace := createEqualConfigMaps(t, from)
	for form, obj := range mutatedForms {
		t.Run(form, func(t *testing.T) {
			changed, panicked := mutateInformer(t, from, namespace, obj, nil)
			if form == "unstructured" {
				assert.Greater(t, changed, equalConfigMaps/2)
			} else {
				assert.Equal(t, 1, changed)
			}
			assert.IsType(t, &cache.MutationError{}, panicked, "a sample is compared under go test")
		})
	}
}

func TestCache_MutationDetectorPanics(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
	from := New(t.Context(), client.Connect(t, "admin"))
	namespace := createEqualConfigMaps(t, from)
	for form, obj := range mutatedForms {
		t.Run(form, func(t *testing.T) {
			_, panicked := mutateInformer(t, from, namespace, obj, nil)
			mutation, isMutation := panicked.(*cache.MutationError)
			require.True(t, isMutation)
			assert.Equal(t, ".metadata.labels.app", mutation.Field)
			assert.Equal(t, namespace+"/map-7", mutation.Key.String())
		})
	}
}
