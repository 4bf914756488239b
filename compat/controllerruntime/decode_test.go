package controllerruntime

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

func TestDecodeUnstructuredList_WrappedEOFIsNoEnd(t *testing.T) {
	broken := iotest.ErrReader(fmt.Errorf("the connection broke: %w", io.EOF))
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},`
	err := decodeUnstructuredList(io.MultiReader(strings.NewReader(list), broken), &unstructuredv1.UnstructuredList{}, unstructured.Limits{})
	require.ErrorContains(t, err, "the connection broke")
}

// TestWatch_CutEventClosesQuietly ends a stream inside an event, as client-go's watches see it: they close without an ERROR.
func TestWatch_CutEventClosesQuietly(t *testing.T) {
	for name, list := range map[string]client.ObjectList{"typed": &corev1.ConfigMapList{}, "unstructured": untypedList(), "metadata": metadataList()} {
		t.Run(name, func(t *testing.T) {
			server := scripted.New("/v1 configmaps configmap ConfigMap")
			server.Handle("WATCH /api/v1/namespaces/shop/configmaps", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"Conf`)
			})
			anykind := dynamic.New(scripted.Connect(t, server, nil), nil)
			t.Cleanup(anykind.Close)
			c, err := New(t.Context(), anykind).NewClientWithWatch(nil, client.Options{})
			require.NoError(t, err)
			w, err := c.Watch(t.Context(), list, client.InNamespace("shop"))
			require.NoError(t, err)
			defer w.Stop()
			for event := range w.ResultChan() {
				t.Errorf("%s %v", event.Type, event.Object)
			}
		})
	}
}

// TestCache_UndecodableObjectIsDeleted deletes a cached object whose last state does not fit its Go type.
func TestCache_UndecodableObjectIsDeleted(t *testing.T) {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	events := make(chan string)
	server.Handle("WATCH /api/v1/configmaps", scripted.WatchChannel(events))
	anykind := dynamic.New(scripted.Connect(t, server, nil), nil)
	defer anykind.Close()
	reported := make(chan error, 10)
	c, err := New(t.Context(), anykind).NewCache(nil, ctrlcache.Options{
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolsReflector, err error) { reported <- err },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, c.Start(ctx)) })
	defer running.Wait()
	defer cancel()
	informer, err := c.GetInformer(ctx, &corev1.ConfigMap{}, ctrlcache.BlockUntilSynced(false))
	require.NoError(t, err)
	deleted := make(chan any, 1)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { deleted <- obj }})
	require.NoError(t, err)
	configMap := func(version, value string) string {
		return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"u1","resourceVersion":"` + version + `"},"data":{"k":` + value + `}}`
	}
	send := func(event string) {
		select {
		case events <- event:
		case <-time.After(time.Minute):
			t.Fatal("no watch")
		}
	}
	send(scripted.Event("ADDED", configMap("5", `"v"`)) + scripted.InitialEventsEnd("v1", "ConfigMap", "5"))
	require.True(t, c.WaitForCacheSync(ctx))
	send(scripted.Event("MODIFIED", configMap("6", "7")))
	require.ErrorContains(t, <-reported, "data")
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	got := &corev1.ConfigMap{}
	require.NoError(t, c.Get(ctx, key, got))
	require.Equal(t, "v", got.Data["k"])
	send(scripted.Event("DELETED", configMap("7", "7")))
	select {
	case obj := <-deleted:
		tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown)
		require.True(t, ok, "%T", obj)
		require.Equal(t, "shop/web", tombstone.Key)
		require.Equal(t, "v", tombstone.Obj.(*corev1.ConfigMap).Data["k"])
	case <-time.After(10 * time.Second):
		t.Fatal("the deletion was not delivered")
	}
	require.True(t, apierrors.IsNotFound(c.Get(ctx, key, got)))
}
