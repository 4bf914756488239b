package clientgo_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// blockedHandler is a recorder that is released by a channel.
type blockedHandler struct {
	recorder
	release chan struct{}
}

func (h *blockedHandler) OnAdd(obj any, isInitial bool) {
	<-h.release
	h.recorder.OnAdd(obj, isInitial)
}

// TestInformer_HandlerGetsAllInitialObjects deletes an object that the handler, which is behind, has not been called for.
func TestInformer_HandlerGetsAllInitialObjects(t *testing.T) {
	deletion := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		send := func(event, metadata string) {
			_, _ = io.WriteString(w, fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Flip","metadata":{%s}}}`, event, metadata))
			_ = http.NewResponseController(w).Flush()
		}
		send("ADDED", `"name":"a","resourceVersion":"1"`)
		send("ADDED", `"name":"b","resourceVersion":"2"`)
		send("BOOKMARK", `"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}`)
		<-deletion
		send("DELETED", `"name":"b","resourceVersion":"3"`)
		<-r.Context().Done()
	}))
	defer server.Close()
	conn, err := transport.New(server.URL, server.Client(), nil)
	require.NoError(t, err)
	defer conn.Close()
	flips := schema.GroupVersionResource{Version: "v1", Resource: "flips"}
	factory := clientgo.NewDynamicSharedInformerFactory(dynamic.New(conn, nil), 0)
	informer := factory.ForResource(flips).Informer()
	handler := &blockedHandler{release: make(chan struct{})}
	_, err = informer.AddEventHandler(handler)
	require.NoError(t, err)
	stop := make(chan struct{})
	defer factory.Shutdown()
	defer close(stop)
	factory.Start(stop)
	require.True(t, cache.WaitForCacheSync(stop, informer.HasSynced))
	close(deletion)
	eventually(t, func() bool { return len(informer.GetStore().ListKeys()) == 1 })
	close(handler.release)
	eventually(t, func() bool { return len(handler.all()) == 3 })
	assert.Equal(t, []string{"add a= true", "add b= true", "delete b="}, handler.all())
}
