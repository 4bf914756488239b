package controllerruntime

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// podResource returns a handle on a server's recorded pod, in the form that the client requests.
func podResource(t *testing.T, protobuf bool, limits transport.MemoryLimits) *dynamic.Resource {
	t.Helper()
	server := scripted.New("/v1 pods pod Pod")
	file, contentType := "pod.json", "application/json"
	if protobuf {
		file, contentType = "pod.pb", "application/vnd.kubernetes.protobuf"
	}
	body, err := os.ReadFile(filepath.Join("..", "..", "internal", "protobuf", "testdata", file))
	require.NoError(t, err)
	server.Handle("GET /api/v1/namespaces/shop/pods/web", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
	conn := scripted.Connect(t, server, &transport.Options{Namespace: "shop", Protobuf: protobuf, MemoryLimits: limits})
	pods, err := dynamic.New(conn, nil).Resource(t.Context(), "pods")
	require.NoError(t, err)
	return pods
}

func TestDecoder_ProtobufEqualsJSON(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	for name, d := range map[string]*decoder{
		"typed":    {newObject: func() (ctrlclient.Object, error) { return &corev1.Pod{}, nil }},
		"metadata": {newObject: newMetadata, kind: kind},
		// Its Unmarshal is the Pod's.
		"embedded": {newObject: func() (ctrlclient.Object, error) { return &annotatedPod{}, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			functions := d.functions()
			assert.Equal(t, name != "embedded", functions.Message != nil)
			get := func(r *dynamic.Resource) ctrlclient.Object {
				obj, err := dynamic.Decode(r, functions).Get(t.Context(), "web", nil)
				require.NoError(t, err)
				return obj.Object
			}
			want := get(podResource(t, false, transport.MemoryLimits{}))
			assert.NotEmpty(t, want.GetName())
			assert.Equal(t, d.kind, want.GetObjectKind().GroupVersionKind())
			assert.Equal(t, want, get(podResource(t, true, transport.MemoryLimits{})))
			assert.Equal(t, want, get(podResource(t, true, transport.MemoryLimits{Object: 1 << 20})), "too large for the generated code")
		})
	}
}

// annotatedPod is a Go type of a program.
type annotatedPod struct {
	corev1.Pod

	Note string `json:"note"`
}

func TestFromConfig_CachesReceiveProtobuf(t *testing.T) {
	for contentType, protobuf := range map[string]bool{"": true, "application/json": false, "application/vnd.kubernetes.protobuf": true} {
		config := &rest.Config{Host: "http://127.0.0.1:1", ContentConfig: rest.ContentConfig{ContentType: contentType}}
		from, err := FromConfig(t.Context(), config)
		require.NoError(t, err)
		assert.Equal(t, protobuf, connOf(from.client).UsesProtobuf(), contentType)
		assert.Equal(t, contentType, from.Config().ContentType)
		assert.Empty(t, from.Config().AcceptContentTypes)
	}
}

// TestClient_TypedIsProtobufOnTheWire compares each read and write with JSON's, and its media type with the form's.
func TestClient_TypedIsProtobufOnTheWire(t *testing.T) {
	var mu sync.Mutex
	received := ""
	connect := func(protobuf bool) ctrlclient.WithWatch {
		conn := client.Connect(t, "admin", func(cfg *transport.Config) {
			cfg.Protobuf = protobuf
			cfg.OnAttempt = func(_ context.Context, attempt transport.Attempt) {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(attempt.Resource, "configmaps") {
					received, _, _ = strings.Cut(attempt.ContentType, ";")
				}
			}
		})
		c, err := New(t.Context(), conn).NewClientWithWatch(nil, ctrlclient.Options{})
		require.NoError(t, err)
		return c
	}
	inProtobuf, inJSON := connect(true), connect(false)
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	key := ctrlclient.ObjectKey{Namespace: namespace, Name: "web"}
	in := ctrlclient.InNamespace(namespace)
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"k": "v", "empty": ""}, BinaryData: map[string][]byte{"b": {0, 1}},
	}
	require.NoError(t, inProtobuf.Create(t.Context(), stored))
	assert.Equal(t, runtime.ContentTypeProtobuf, received, "create")
	get := func(obj ctrlclient.Object) func(ctrlclient.WithWatch) (runtime.Object, error) {
		return func(c ctrlclient.WithWatch) (runtime.Object, error) {
			into := obj.DeepCopyObject().(ctrlclient.Object)
			return into, c.Get(t.Context(), key, into)
		}
	}
	list := func(list ctrlclient.ObjectList) func(ctrlclient.WithWatch) (runtime.Object, error) {
		return func(c ctrlclient.WithWatch) (runtime.Object, error) {
			into := list.DeepCopyObject().(ctrlclient.ObjectList)
			return into, c.List(t.Context(), into, in, ctrlclient.MatchingLabels{"app": "web"})
		}
	}
	watched := func(list ctrlclient.ObjectList) func(ctrlclient.WithWatch) (runtime.Object, error) {
		return func(c ctrlclient.WithWatch) (runtime.Object, error) {
			w, err := c.Watch(t.Context(), list, in, ctrlclient.MatchingLabels{"app": "web"})
			if err != nil {
				return nil, err
			}
			event := <-w.ResultChan()
			w.Stop()
			for range w.ResultChan() { // until it is closed
				continue
			}
			assert.Equal(t, watch.Added, event.Type)
			return event.Object, nil
		}
	}
	for _, call := range []struct {
		name   string
		isJSON bool
		call   func(ctrlclient.WithWatch) (runtime.Object, error)
	}{
		{"get, typed", false, get(&corev1.ConfigMap{})},
		{"get, metadata", false, get(metadataOf(configMaps, "", ""))},
		{"get, unstructured", true, get(untyped(configMaps, "", ""))},
		{"list, typed", false, list(&corev1.ConfigMapList{})},
		{"list, metadata", false, list(metadataList())},
		{"list, unstructured", true, list(untypedList())},
		{"watch, typed", false, watched(&corev1.ConfigMapList{})},
		{"watch, metadata", false, watched(metadataList())},
		{"watch, unstructured", true, watched(untypedList())},
		{"patch", false, func(c ctrlclient.WithWatch) (runtime.Object, error) {
			obj := stored.DeepCopy()
			return obj, c.Patch(t.Context(), obj, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"v"}}`)))
		}},
		{"update", false, func(c ctrlclient.WithWatch) (runtime.Object, error) {
			obj := stored.DeepCopy()
			return obj, c.Update(t.Context(), obj)
		}},
	} {
		t.Run(call.name, func(t *testing.T) {
			want, err := call.call(inJSON)
			require.NoError(t, err)
			assert.Equal(t, runtime.ContentTypeJSON, received)
			got, err := call.call(inProtobuf)
			require.NoError(t, err)
			assert.Equal(t, !call.isJSON, received == runtime.ContentTypeProtobuf, received)
			assert.Equal(t, want, got)
		})
	}
}

// TestWatch_MetadataOfCustomResources receives events whose objects have no envelope as protobuf.
func TestWatch_MetadataOfCustomResources(t *testing.T) {
	admin := client.Connect(t, "admin", func(cfg *transport.Config) { cfg.Protobuf = true })
	group := client.NewNamespace(t, admin) + ".example.com" // unique
	definitions := client.Resource(t, admin, "customresourcedefinitions")
	definition, err := unstructured.Decode([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"parts.` + group + `"},"spec":{"group":"` + group + `","scope":"Cluster",
		"names":{"plural":"parts","kind":"Part"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`))
	require.NoError(t, err)
	_, err = definitions.Create(t.Context(), definition, nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, definitions, definition.GetName())
	_, err = definitions.Wait(t.Context(), definition.GetName(), dynamic.Condition("Established"))
	require.NoError(t, err)
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Part"}
	part := untyped(gvk, "", "a")
	c, err := New(t.Context(), admin).NewClientWithWatch(nil, ctrlclient.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), part))
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind("PartList"))
	require.NoError(t, c.List(t.Context(), list))
	require.Len(t, list.Items, 1)
	w, err := c.Watch(t.Context(), list)
	require.NoError(t, err)
	event := <-w.ResultChan()
	w.Stop()
	for range w.ResultChan() { // until it is closed
		continue
	}
	assert.Equal(t, watch.Added, event.Type)
	require.IsType(t, &metav1.PartialObjectMetadata{}, event.Object)
	assert.Equal(t, list.Items[0].ObjectMeta, event.Object.(*metav1.PartialObjectMetadata).ObjectMeta)
	assert.Equal(t, part.GetUID(), list.Items[0].UID)
}
