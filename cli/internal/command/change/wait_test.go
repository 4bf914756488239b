package change

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// waitServer serves the ConfigMaps a, with data, and b.
func waitServer(t *testing.T) *httptest.Server {
	t.Helper()
	object := func(name string) string {
		data := map[string]string{"a": `{"key":"value"}`, "b": "null"}[name]
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"shop","uid":"` + name + `","resourceVersion":"7"},"data":` + data + `}`
	}
	api := scripted.New("/v1 configmaps configmap ConfigMap cm")
	const collection = "/api/v1/namespaces/shop/configmaps"
	for _, name := range []string{"a", "b"} {
		api.Handle("GET "+collection+"/"+name, scripted.JSON(object(name)))
	}
	api.Handle("GET "+collection, func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		scripted.JSON(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[`+object(name)+`]}`)(w, r)
	})
	api.Handle("WATCH "+collection, scripted.Watch())
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return server
}

// runWait waits for the ConfigMaps of waitServer.
func runWait(ctx context.Context, t *testing.T, out io.Writer, condition string) result {
	t.Helper()
	server := waitServer(t)
	return execute(ctx, flags.NewConnection(), strings.NewReader(""), out,
		"wait", "cm", "a", "b", "--for="+condition, "--timeout=1s", "-n", "shop", "--kubeconfig", os.DevNull, "--server", server.URL, "--cache-dir=")
}

// The expression fails for the first object, and is not met by the second.
func TestWait_FailedExpressionOfOneObject(t *testing.T) {
	r := runWait(t.Context(), t, io.Discard, "jsonpath={.data}=x")
	assert.Equal(t, 1, r.code)
	assert.Equal(t, 1, strings.Count(r.stderr, "jsonpath leads to a nested object or list which is not supported"), r.stderr)
	assert.Contains(t, r.stderr, "timed out waiting for the condition on configmaps/b")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWait_InterruptedBetweenObjects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := writerFunc(func(p []byte) (int, error) { // for the first object
		cancel()
		return len(p), nil
	})
	r := runWait(ctx, t, out, "create")
	assert.Equal(t, exit.Interrupted, r.code, r.stderr)
	assert.Contains(t, r.stderr, `1 of 2 objects met; not met: configmaps "b"`)
}
