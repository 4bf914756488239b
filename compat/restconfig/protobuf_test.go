package restconfig_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
)

// TestFromConn_TypedClientReceivesProtobuf sends the requests of client-go's typed clients with their content type.
func TestFromConn_TypedClientReceivesProtobuf(t *testing.T) {
	var mu sync.Mutex
	received := map[string]string{} // by verb
	admin := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.OnAttempt = func(_ context.Context, attempt transport.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			received[attempt.Verb], _, _ = strings.Cut(attempt.ContentType, ";")
		}
	})
	namespace := client.NewNamespace(t, admin)
	config := restconfig.FromConn(client.Resource(t, admin, "configmaps").Conn())
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	configMaps := clients.CoreV1().ConfigMaps(namespace)
	clear(received)
	created, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	got, err := configMaps.Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, created, got)
	opts := metav1.ListOptions{FieldSelector: "metadata.name=web"}
	list, err := configMaps.List(t.Context(), opts)
	require.NoError(t, err)
	assert.Equal(t, []corev1.ConfigMap{*created}, list.Items)
	watch, err := configMaps.Watch(t.Context(), opts)
	require.NoError(t, err)
	assert.Equal(t, created, (<-watch.ResultChan()).Object)
	watch.Stop()
	for range watch.ResultChan() { // until it is closed
		continue
	}
	mu.Lock()
	defer mu.Unlock()
	for _, verb := range []string{"create", "get", "list", "watch"} {
		assert.Equal(t, runtime.ContentTypeProtobuf, received[verb], verb)
	}
}
