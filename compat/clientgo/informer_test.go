package clientgo_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/internal/testing/client"
)

// patience bounds the time until something happens that does not depend on the test.
const patience = 3 * time.Minute

// recorder is a handler that records its calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) record(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func value(obj any) string {
	own := obj.(*unstructuredv1.Unstructured)
	text, _, _ := unstructuredv1.NestedString(own.Object, "data", "key")
	return own.GetName() + "=" + text
}

func (r *recorder) OnAdd(obj any, isInitial bool) { r.record("add %s %v", value(obj), isInitial) }
func (r *recorder) OnUpdate(old, obj any)         { r.record("update %s %s", value(old), value(obj)) }
func (r *recorder) OnDelete(obj any) {
	if inferred, ok := obj.(cache.DeletedFinalStateUnknown); ok { // after a relist
		obj = inferred.Obj
	}
	r.record("delete %s", value(obj))
}

func withoutRootCA(options *metav1.ListOptions) {
	options.FieldSelector = "metadata.name!=kube-root-ca.crt"
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond)
}

// TestInformer_SameAsClientGo runs the same informer of client-go and of ours on one namespace.
func TestInformer_SameAsClientGo(t *testing.T) {
	s := newSandbox(t)
	namespace := client.NewNamespace(t, s.client)
	maps := s.client.ForGVR(configMaps).Namespace(namespace)
	_, err := maps.Create(t.Context(), configMap("first", "1"), nil)
	require.NoError(t, err)
	stop := make(chan struct{})
	recorders := map[string]*recorder{}
	informers := map[string]cache.SharedIndexInformer{}
	for name, factory := range map[string]dynamicinformer.DynamicSharedInformerFactory{
		"client-go": dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.clients(t)["client-go"], 0, namespace, withoutRootCA),
		"anykind":   clientgo.NewFilteredDynamicSharedInformerFactory(s.client, 0, namespace, withoutRootCA),
	} {
		generic := factory.ForResource(configMaps)
		assert.Same(t, generic.Informer(), factory.ForResource(configMaps).Informer())
		recorders[name] = &recorder{}
		informers[name] = generic.Informer()
		registration, err := generic.Informer().AddEventHandler(recorders[name])
		require.NoError(t, err)
		assert.False(t, registration.HasSynced())
		require.NoError(t, generic.Informer().AddIndexers(cache.Indexers{"key": func(obj any) ([]string, error) { return []string{value(obj)}, nil }}))
		factory.Start(stop)
		factory.Start(stop)
		defer factory.Shutdown()
		assert.Equal(t, map[schema.GroupVersionResource]bool{configMaps: true}, factory.WaitForCacheSync(stop))
		eventually(t, registration.HasSynced)
		lister := generic.Lister()
		found, err := lister.ByNamespace(namespace).Get("first")
		require.NoError(t, err)
		assert.Equal(t, "first=1", value(found))
		listed, err := lister.List(labels.Everything())
		require.NoError(t, err)
		assert.Len(t, listed, 1)
		_, err = lister.ByNamespace(namespace).Get("missing")
		require.ErrorContains(t, err, "not found")
	}
	defer close(stop)
	steps := func(n int) {
		for _, own := range recorders {
			eventually(t, func() bool { return len(own.all()) >= n })
		}
	}
	steps(1)
	_, err = maps.Create(t.Context(), configMap("second", "1"), nil)
	require.NoError(t, err)
	steps(2)
	_, err = maps.Update(t.Context(), configMap("second", "2"), nil)
	require.NoError(t, err)
	steps(3)
	_, err = maps.Delete(t.Context(), "first", nil)
	require.NoError(t, err)
	steps(4)
	assert.Equal(t, []string{"add first=1 true", "add second=1 false", "update second=1 second=2", "delete first=1"}, recorders["anykind"].all())
	assert.Equal(t, recorders["client-go"].all(), recorders["anykind"].all())
	for name, own := range informers {
		eventually(t, func() bool { return len(own.GetStore().List()) == 1 })
		key := namespace + "/second"
		assert.Equal(t, []string{key}, own.GetStore().ListKeys(), name)
		objects, err := own.GetIndexer().ByIndex("key", "second=2")
		require.NoError(t, err)
		require.Len(t, objects, 1)
		keys, err := own.GetIndexer().IndexKeys("key", "second=2")
		require.NoError(t, err)
		assert.Equal(t, []string{key}, keys)
		inNamespace, err := own.GetIndexer().Index(cache.NamespaceIndex, objects[0])
		require.NoError(t, err)
		assert.Equal(t, objects, inNamespace)
		assert.Equal(t, []string{"second=2"}, own.GetIndexer().ListIndexFuncValues("key"))
		_, err = own.GetIndexer().ByIndex("missing", "x")
		require.EqualError(t, err, "Index with name missing does not exist")
		item, exists, err := own.GetStore().Get(objects[0])
		require.NoError(t, err)
		assert.True(t, exists)
		assert.Equal(t, objects[0], item)
		_, exists, err = own.GetStore().GetByKey("no/such/key")
		require.NoError(t, err)
		assert.False(t, exists)
		assert.NotEmpty(t, own.LastSyncResourceVersion())
		// Added late, as client-go permits.
		require.NoError(t, own.AddIndexers(cache.Indexers{"late": func(any) ([]string, error) { return []string{"all"}, nil }}))
		objects, err = own.GetIndexer().ByIndex("late", "all")
		require.NoError(t, err)
		assert.Len(t, objects, 1)
		late := &recorder{}
		registration, err := own.AddEventHandler(late)
		require.NoError(t, err)
		eventually(t, registration.HasSynced)
		assert.Equal(t, []string{"add second=2 true"}, late.all(), name)
		require.NoError(t, own.RemoveEventHandler(registration))
		require.Error(t, own.SetTransform(func(obj any) (any, error) { return obj, nil }))
	}
}

func TestInformer_TransformAndResync(t *testing.T) {
	s := newSandbox(t)
	namespace := client.NewNamespace(t, s.client)
	_, err := s.client.ForGVR(configMaps).Namespace(namespace).Create(t.Context(), configMap("a", "1"), nil)
	require.NoError(t, err)
	factory := clientgo.NewFilteredDynamicSharedInformerFactory(s.client, 0, namespace, withoutRootCA)
	informer := factory.ForResource(configMaps).Informer()
	require.NoError(t, informer.SetTransform(func(obj any) (any, error) {
		own := obj.(*unstructuredv1.Unstructured)
		return own, unstructuredv1.SetNestedField(own.Object, "changed", "data", "key")
	}))
	often := &recorder{}
	never := &recorder{}
	_, err = informer.AddEventHandlerWithResyncPeriod(often, 50*time.Millisecond)
	require.NoError(t, err)
	_, err = informer.AddEventHandler(never)
	require.NoError(t, err)
	stop := make(chan struct{})
	factory.Start(stop)
	eventually(t, func() bool { return len(often.all()) >= 3 })
	close(stop)
	factory.Shutdown()
	assert.Equal(t, []string{"add a=changed true", "update a=changed a=changed", "update a=changed a=changed"}, often.all()[:3])
	assert.Equal(t, []string{"add a=changed true"}, never.all())
	assert.True(t, informer.IsStopped())
	_, err = informer.AddEventHandler(never)
	require.ErrorContains(t, err, "stopped already")
	factory.Start(make(chan struct{})) // does nothing after Shutdown
}

// TestInformer_RetriesRejectedList grants a right after the first list has been rejected.
func TestInformer_RetriesRejectedList(t *testing.T) {
	s := newSandbox(t)
	limited := client.Connect(t, "limited")
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespace := client.NewNamespace(t, s.client)
	factory := clientgo.NewFilteredDynamicSharedInformerFactory(limited, 0, namespace, nil)
	informer := factory.ForResource(secrets).Informer()
	var rejected atomic.Int64
	require.NoError(t, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) {
		assert.NotNil(t, r)
		assert.Error(t, err)
		rejected.Add(1)
	}))
	stop := make(chan struct{})
	factory.Start(stop)
	defer factory.Shutdown()
	defer close(stop)
	eventually(t, func() bool { return rejected.Load() > 0 })
	assert.False(t, informer.HasSynced())
	rbac := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	binding := &unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "edit"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}},
	}}
	_, err := s.client.ForGVR(rbac).Namespace(namespace).Create(t.Context(), binding, nil)
	require.NoError(t, err)
	eventually(t, informer.HasSynced)
	synced, ok := informer.(interface{ Synced() <-chan struct{} })
	require.True(t, ok)
	done := synced.Synced()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(t, "not done")
	}
}
