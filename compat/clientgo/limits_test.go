package clientgo_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/transport"
	anykind "github.com/anykind/anykind/unstructured"
)

// zipped returns a client of a server that responds with body, compressed.
func zipped(t *testing.T, limits transport.MemoryLimits, body string) dynamic.ResourceInterface {
	t.Helper()
	var text strings.Builder
	writer := gzip.NewWriter(&text)
	_, _ = io.WriteString(writer, body)
	require.NoError(t, writer.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, text.String())
	}))
	t.Cleanup(server.Close)
	conn, err := transport.New(server.URL, server.Client(), &transport.Options{MemoryLimits: limits})
	require.NoError(t, err)
	return clientgo.NewDynamic(conn).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
}

func TestNewDynamic_MemoryLimits(t *testing.T) {
	limits := transport.MemoryLimits{Object: 4 << 20, Page: 16 << 20}
	client := zipped(t, limits, `{"apiVersion":"v1","kind":"ConfigMapList","items":[{}`+strings.Repeat(`,{"a":{"b":{"c":[1]}},"metadata":{"name":"x"}}`, 50000)+`]}`)
	ctx := t.Context()
	for name, c := range map[string]struct {
		limit int64
		call  func() error
	}{
		"Get":  {limits.Object, func() error { _, err := client.Get(ctx, "web", metav1.GetOptions{}); return err }},
		"List": {limits.Page, func() error { _, err := client.List(ctx, metav1.ListOptions{}); return err }},
		"Apply": {limits.Object, func() error {
			_, err := client.Apply(ctx, "web", flip("name", "web"), metav1.ApplyOptions{FieldManager: "me"})
			return err
		}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.call()
		runtime.ReadMemStats(&after)
		tooLarge := &anykind.LimitError{}
		require.ErrorAs(t, err, &tooLarge, name)
		assert.Equal(t, c.limit, tooLarge.Limit, name)
		assert.Less(t, int64(after.TotalAlloc-before.TotalAlloc), 4*c.limit+1<<20, name)
	}
	t.Run("watch", func(t *testing.T) {
		w, err := client.Watch(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		event := <-w.ResultChan()
		assert.ErrorContains(t, apierrors.FromObject(event.Object), "needs more than 4 MiB of memory")
	})
}

// A response without use does not have to end.
func TestNewDynamic_DeleteDiscardsABoundedBody(t *testing.T) {
	left := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for chunk := strings.Repeat(" ", 64<<10); ; {
			if _, err := io.WriteString(w, chunk); err != nil {
				left <- true
				return
			}
		}
	}))
	defer server.Close()
	conn, err := transport.New(server.URL, server.Client(), nil)
	require.NoError(t, err)
	client := clientgo.NewDynamic(conn).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	require.NoError(t, client.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	<-left
}
