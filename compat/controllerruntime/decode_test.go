package controllerruntime

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
