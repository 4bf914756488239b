package clientgo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/internal/testing/client"
)

const mutatedConfigMaps = 20

// createEqualConfigMaps creates config maps that differ in their names only.
func createEqualConfigMaps(t *testing.T, s *sandbox) (namespace string) {
	t.Helper()
	namespace = client.NewNamespace(t, s.client)
	for i := range mutatedConfigMaps {
		_, err := s.client.ForGVR(configMaps).Namespace(namespace).Create(t.Context(), configMap(fmt.Sprint("map-", i), "1"), nil)
		require.NoError(t, err)
	}
	return namespace
}

// startInformer runs an informer until stop is called, which returns what its Run panicked with.
func startInformer(t *testing.T, informer toolscache.SharedIndexInformer) (stop func() any) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		informer.RunWithContext(ctx)
	}()
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return func() any {
		cancel()
		return <-panicked
	}
}

// mutate changes one object of an informer, and counts the objects that show the change.
func mutate(t *testing.T, informer toolscache.SharedIndexInformer, namespace string) (changed int) {
	t.Helper()
	obj, found, err := informer.GetStore().GetByKey(namespace + "/map-7")
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, unstructuredv1.SetNestedField(obj.(*unstructuredv1.Unstructured).Object, "changed", "data", "key"))
	for _, obj := range informer.GetStore().List() {
		if value, _, _ := unstructuredv1.NestedString(obj.(*unstructuredv1.Unstructured).Object, "data", "key"); value == "changed" {
			changed++
		}
	}
	return changed
}

// TestInformer_MutationStaysInObject changes one object of an informer of client-go and of ours.
func TestInformer_MutationStaysInObject(t *testing.T) {
	s := newSandbox(t)
	namespace := createEqualConfigMaps(t, s)
	transforms := map[string]toolscache.TransformFunc{"no transform": nil, "transform": func(obj any) (any, error) { return obj, nil }}
	for transformName, transform := range transforms {
		for name, factory := range map[string]dynamicinformer.DynamicSharedInformerFactory{
			"client-go": dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.clients(t)["client-go"], 0, namespace, withoutRootCA),
			"anykind":   clientgo.NewFilteredDynamicSharedInformerFactory(s.client, 0, namespace, withoutRootCA),
			"interned": clientgo.NewDynamicSharedInformerFactoryWithOptions(s.client, 0, &clientgo.InformerFactoryOptions{
				Namespace: namespace, TweakListOptions: withoutRootCA, Intern: true,
			}),
		} {
			t.Run(name+", "+transformName, func(t *testing.T) {
				informer := factory.ForResource(configMaps).Informer()
				require.NoError(t, informer.SetTransform(transform))
				stop := startInformer(t, informer)
				changed := mutate(t, informer, namespace)
				if name == "interned" {
					assert.Greater(t, changed, mutatedConfigMaps/2)
					mutation, isMutation := stop().(*cache.MutationError)
					require.True(t, isMutation, "a sample is compared under go test")
					assert.Empty(t, mutation.Field)
					return
				}
				assert.Equal(t, 1, changed)
				assert.Nil(t, stop())
			})
		}
	}
}

// TestInformer_MutationDetectorPanics sets client-go's variable. The next event reveals the mutation.
func TestInformer_MutationDetectorPanics(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
	s := newSandbox(t)
	namespace := createEqualConfigMaps(t, s)
	informer := clientgo.NewFilteredDynamicSharedInformerFactory(s.client, 0, namespace, nil).ForResource(configMaps).Informer()
	stop := startInformer(t, informer)
	assert.Equal(t, 1, mutate(t, informer, namespace))
	time.Sleep(time.Second) // between two comparisons of all objects
	_, err := s.client.ForGVR(configMaps).Namespace(namespace).Create(t.Context(), configMap("next", "1"), nil)
	require.NoError(t, err)
	eventually(t, informer.IsStopped)
	mutation, isMutation := stop().(*cache.MutationError)
	require.True(t, isMutation)
	assert.Equal(t, ".data.key", mutation.Field)
	assert.Equal(t, namespace+"/map-7", mutation.Key.String())
}
