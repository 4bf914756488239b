package change

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// The expression fails for the first object, and is not met by the second.
func TestWait_FailedExpressionOfOneObject(t *testing.T) {
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
	defer server.Close()
	var stdout, stderr bytes.Buffer
	state := &command.State{
		Streams:    command.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		Connection: &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"},
	}
	root := command.Root(state, &cobra.Command{Use: "anyctl"}, Commands(state)...)
	root.SetArgs([]string{"wait", "cm", "a", "b", "--for=jsonpath={.data}=x", "--timeout=1s", "-n", "shop", "--kubeconfig", os.DevNull, "--server", server.URL})
	err := root.ExecuteContext(t.Context())
	state.Connection.Close()
	require.Equal(t, 1, exit.Report(&stderr, err))
	const nested = "jsonpath leads to a nested object or list which is not supported"
	assert.Equal(t, 1, strings.Count(stderr.String(), nested), "%s", &stderr)
	assert.Contains(t, stderr.String(), "timed out waiting for the condition on configmaps/b")
}
