package controllerruntime

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// receivedPod returns the recorded pod as received in the form that the client requests.
func receivedPod(t *testing.T, protobuf bool) *unstructured.Lazy {
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
	conn := scripted.Connect(t, server, &transport.Options{Namespace: "shop", Protobuf: protobuf})
	pods, err := dynamic.New(conn, nil).Resource(t.Context(), "pods")
	require.NoError(t, err)
	pod, err := dynamic.As[unstructured.Lazy](pods).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, protobuf, pod.Protobuf() != nil)
	return pod
}

func TestDecodeInto_ProtobufEqualsJSON(t *testing.T) {
	for _, limits := range []unstructured.Limits{{}, {Object: 1 << 20}} { // with the second, protobuf is decoded from JSON, too
		for _, newObject := range []func() client.Object{
			func() client.Object { return &corev1.Pod{} }, func() client.Object { return &metav1.PartialObjectMetadata{} },
		} {
			want := newObject()
			require.NoError(t, decodeInto(receivedPod(t, false), want, limits))
			got := newObject()
			require.NoError(t, decodeInto(receivedPod(t, true), got, limits))
			got.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
			assert.Equal(t, want, got)
		}
	}
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
