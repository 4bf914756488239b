package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestConsistentClient_ReadsItsWrites(t *testing.T) {
	ours, _ := sides(t)
	for name, options := range map[string]ctrlcache.Options{
		"all namespaces":     {},
		"several namespaces": {DefaultNamespaces: map[string]ctrlcache.Config{ours.namespace: {}, "default": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			cache, start := ours.cache(t, options)
			start()
			c := ours.client(t, ctrlclient.Options{FieldOwner: "test", Cache: &ctrlclient.CacheOptions{
				Reader: cache, Unstructured: true, EnableReadYourWritesConsistency: ptr(true),
			}})
			for round := range 10 {
				checkConsistency(t, ours, c, fmt.Sprintf("m-%d", round))
			}
			assert.Error(t, c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}))
		})
	}
}

func checkConsistency(t *testing.T, s *side, c ctrlclient.Client, name string) {
	t.Helper()
	ctx := t.Context()
	key := ctrlclient.ObjectKey{Namespace: s.namespace, Name: name}
	obj := s.configMap(name)
	got := &corev1.ConfigMap{}
	require.NoError(t, c.Create(ctx, obj))
	require.NoError(t, c.Get(ctx, key, got))
	obj.Data["k"] = "updated"
	require.NoError(t, c.Update(ctx, obj))
	require.NoError(t, c.Get(ctx, key, got))
	require.Equal(t, "updated", got.Data["k"])
	require.NoError(t, c.Patch(ctx, obj, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"patched"}}`))))
	list := &corev1.ConfigMapList{}
	require.NoError(t, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"app": name}))
	require.Len(t, list.Items, 1)
	require.Equal(t, "patched", list.Items[0].Data["k"])
	require.NoError(t, c.Apply(ctx, coreapply.ConfigMap(name, s.namespace).WithData(map[string]string{"k": "applied"}), ctrlclient.ForceOwnership))
	require.NoError(t, c.Get(ctx, key, got))
	require.Equal(t, "applied", got.Data["k"])

	loose := untyped(configMaps, s.namespace, name)
	require.NoError(t, c.Patch(ctx, loose, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"untyped"}}`))))
	read := untyped(configMaps, "", "")
	require.NoError(t, c.Get(ctx, key, read))
	require.Equal(t, loose.GetResourceVersion(), read.GetResourceVersion())

	require.NoError(t, c.Delete(ctx, obj))
	require.True(t, apierrors.IsNotFound(c.Get(ctx, key, got)))
}

func TestConsistentClient_DeleteWithoutUID(t *testing.T) {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	events := make(chan string)
	server.Handle("WATCH /api/v1/configmaps", scripted.WatchChannel(events))
	server.Handle("DELETE /api/v1/namespaces/shop/configmaps/web", scripted.JSON(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)) // without a UID
	anykind := dynamic.New(scripted.Connect(t, server, nil), nil)
	defer anykind.Close()
	from := New(t.Context(), anykind)
	cache, err := from.NewCache(nil, ctrlcache.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, cache.Start(ctx)) })
	defer running.Wait()
	defer cancel()
	require.True(t, cache.WaitForCacheSync(ctx), "the cache has started")
	c, err := from.NewClient(nil, ctrlclient.Options{Cache: &ctrlclient.CacheOptions{Reader: cache, EnableReadYourWritesConsistency: ptr(true)}})
	require.NoError(t, err)
	const configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"u1","resourceVersion":"5"}}`
	running.Go(func() {
		events <- scripted.Event("ADDED", configMap) + scripted.InitialEventsEnd("v1", "ConfigMap", "5")
	})
	key := ctrlclient.ObjectKey{Namespace: "shop", Name: "web"}
	got := &corev1.ConfigMap{}
	require.NoError(t, c.Get(ctx, key, got))
	require.NoError(t, c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}))
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, c.Get(ended, key, got), context.Canceled, "it waits for the deletion")
	running.Go(func() { events <- scripted.Event("DELETED", configMap) })
	require.True(t, apierrors.IsNotFound(c.Get(ctx, key, got)))
}

func TestInFlightWrites_WaitErrorHasCause(t *testing.T) {
	writes := &inFlightWrites{}
	of := kindForm{configMaps, typedForm}
	key := ctrlclient.ObjectKey{Namespace: "shop", Name: "web"}
	defer writes.begin(of, key)()
	cause := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, err := range []error{writes.wait(ctx, of), writes.wait(ctx, of, key)} {
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
	}
}

// TestWatch_AllForms compares the events of each form.
func TestWatch_AllForms(t *testing.T) {
	for name, newList := range map[string]func() ctrlclient.ObjectList{
		"typed":        func() ctrlclient.ObjectList { return &corev1.ConfigMapList{} },
		"unstructured": func() ctrlclient.ObjectList { return untypedList() },
		"metadata":     func() ctrlclient.ObjectList { return metadataList() },
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := sides(t)
			events := map[*side][]string{}
			for _, s := range []*side{ours, theirs} {
				c := s.client(t, ctrlclient.Options{})
				w, err := c.Watch(t.Context(), newList(), ctrlclient.InNamespace(s.namespace))
				require.NoError(t, err)
				obj := s.configMap("web")
				require.NoError(t, c.Create(t.Context(), obj))
				obj.Data["k"] = "updated"
				require.NoError(t, c.Update(t.Context(), obj))
				require.NoError(t, c.Delete(t.Context(), obj))
				for range 3 {
					select {
					case event := <-w.ResultChan():
						require.NotEqual(t, watch.Error, event.Type)
						events[s] = append(events[s], string(event.Type)+" "+s.outcome(t, event.Object, nil))
					case <-time.After(2 * time.Minute):
						t.Fatal("no event")
					}
				}
				w.Stop()
				for range w.ResultChan() { // until it is closed
					continue
				}
			}
			assert.Equal(t, events[theirs], events[ours])
		})
	}
}
