package stream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/transport"
)

// allocated returns the bytes that f allocates, which are at least those that it holds at any time.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // less than the memory of this machine
}

func TestGetJSON_LimitsMemory(t *testing.T) {
	const object, page = 8 << 20, 9 << 20
	many := func(element string) string {
		return "[" + element + strings.Repeat(","+element, 1_000_000/(len(element)+1)) + "]"
	} // 1 MB
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	defer server.Close()
	conn, err := transport.New(server.URL, server.Client(), &transport.Options{MemoryLimits: transport.MemoryLimits{Object: object, Page: page}})
	require.NoError(t, err)
	for _, body = range []string{`{"items":` + many(`{}`) + `}`, `{"ITEMS":` + many(`null`) + `}`, `{"Items":[{"Spec":{"Containers":` + many(`{}`) + `}}]}`} {
		assert.Less(t, allocated(func() {
			for _, err := range listPods(t.Context(), conn, "/pods", url.Values{}, "10") {
				require.ErrorContains(t, err, "needs more than 9 MiB of memory", body[:60])
			}
		}), int64(4*page))
	}
	body = `{"spec":{"containers":` + many(`{}`) + `}}`
	require.ErrorContains(t, getJSON(t.Context(), conn, "/pods/a", &pod{}), "needs more than 8 MiB of memory")
	body = `{"type":"ADDED","object":` + body + `}`
	stream, err := (&logPods{conn: conn, path: "/pods"}).Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64)})
	require.NoError(t, err)
	defer stream.Close()
	err = stream.Next(&podEvent{})
	require.ErrorContains(t, err, "watch pods: the response needs more than 8 MiB of memory")

	body = `{"spec":{"selector":{"a":"` + strings.Repeat("b", maxSelector) + `"}}}`
	_, _, err = readOwner(t.Context(), conn, &objectRef{path: "/services/a"})
	require.ErrorContains(t, err, "longer than 64 KiB")
}
