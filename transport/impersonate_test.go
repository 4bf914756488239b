package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// serveImpersonation responds to each request with the headers that impersonate.
func serveImpersonation(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.DeleteFunc(r.Header, func(name string, _ []string) bool { return !strings.HasPrefix(name, "Impersonate-") })
		_ = json.NewEncoder(w).Encode(r.Header)
	}))
	t.Cleanup(server.Close)
	return server
}

// impersonation returns the response of such a server as text.
func impersonation(t *testing.T, conn *transport.Conn, header http.Header) string {
	t.Helper()
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/", Header: header})
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return strings.TrimSpace(string(body))
}

func TestConn_ImpersonateReplacesUser(t *testing.T) {
	server := serveImpersonation(t)
	config := &transport.Config{Server: server.URL, Token: kubeconfig.NewSecret("t")}
	impersonating := *config
	impersonating.Impersonate = transport.Impersonation{User: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string][]string{"acme.com/Team": {"x"}}}
	for name, connect := range map[string]func() (*transport.Conn, error){
		"Open":                func() (*transport.Conn, error) { return transport.Open(config) },
		"Open, impersonating": func() (*transport.Conn, error) { return transport.Open(&impersonating) },
		"New":                 func() (*transport.Conn, error) { return transport.New(server.URL, nil, nil) },
		"New, then Impersonate": func() (*transport.Conn, error) {
			conn, err := transport.New(server.URL, nil, nil)
			require.NoError(t, err)
			return conn.Impersonate(impersonating.Impersonate)
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := connect()
			require.NoError(t, err)
			defer conn.Close()
			before := impersonation(t, conn, nil)
			bob, err := conn.Impersonate(transport.Impersonation{User: "bob", Groups: []string{"dev", "qa"}})
			require.NoError(t, err)
			const want = `{"Impersonate-Group":["dev","qa"],"Impersonate-User":["bob"]}`
			assert.Equal(t, want, impersonation(t, bob, nil))
			assert.Equal(t, want, impersonation(t, bob, http.Header{"impersonate-uid": {"0"}, "Impersonate-User": {"root"}}), "a request's own header")

			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			response, err := bob.RoundTrip(request)
			require.NoError(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, want, strings.TrimSpace(string(body)))
			assert.Equal(t, before, impersonation(t, conn, nil), "the original is as it was")
		})
	}
}

func TestConn_ImpersonateWithoutUser(t *testing.T) {
	conn, err := transport.Open(&transport.Config{Server: "http://127.0.0.1:1", Impersonate: transport.Impersonation{User: "ann"}})
	require.NoError(t, err)
	defer conn.Close()
	for _, as := range []transport.Impersonation{{}, {Groups: []string{"dev"}}, {UID: "7"}} {
		derived, err := conn.Impersonate(as)
		require.EqualError(t, err, "impersonate: the user is missing")
		assert.Nil(t, derived)
	}
}

// TestConn_ImpersonateWrapperDropsContext has a round tripper that makes requests of its own: the credential must not go out
// without the user.
func TestConn_ImpersonateWrapperDropsContext(t *testing.T) {
	var headers []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { headers = append(headers, r.Header) }))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, Token: kubeconfig.NewSecret("t"), Options: transport.Options{
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				return next.RoundTrip(req.Clone(context.WithoutCancel(context.Background())))
			})
		},
	}})
	require.NoError(t, err)
	defer conn.Close()
	bob, err := conn.Impersonate(transport.Impersonation{User: "bob"})
	require.NoError(t, err)
	require.NoError(t, do(t, bob, &transport.Request{Path: "/"}))
	require.Len(t, headers, 1)
	assert.Empty(t, headers[0]["Authorization"])
	assert.Empty(t, headers[0]["Impersonate-User"])
}

func TestConn_ImpersonateSharesConnections(t *testing.T) {
	var peers []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { peers = append(peers, r.RemoteAddr) }))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, do(t, conn, &transport.Request{Path: "/"}))
	for range 3 {
		bob, err := conn.Impersonate(transport.Impersonation{User: "bob"})
		require.NoError(t, err)
		require.NoError(t, do(t, bob, &transport.Request{Path: "/"}))
		bob.Close() // closes nothing
	}
	assert.Len(t, slices.Compact(peers), 1)
}

func TestConn_WithOnWarning(t *testing.T) {
	var parent, child []string
	conn := serveWith(t, transport.Options{OnWarning: func(_ context.Context, text string) { parent = append(parent, text) }},
		func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("Warning", `299 - "deprecated"`) })
	derived := conn.WithOnWarning(func(_ context.Context, text string) { child = append(child, text) })
	for _, each := range []*transport.Conn{derived, derived, conn, conn.WithOnWarning(nil)} {
		require.NoError(t, do(t, each, &transport.Request{Path: "/"}))
	}
	assert.Equal(t, []string{"deprecated"}, parent)
	assert.Equal(t, []string{"deprecated"}, child, "once for each Conn")
}

func ExampleConn_Impersonate() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Impersonate-User"))
	}))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	jane, err := conn.Impersonate(transport.Impersonation{User: "jane", Groups: []string{"developers"}})
	if err != nil {
		log.Fatal(err)
	}
	response, err := jane.Do(context.Background(), &transport.Request{Path: "/"})
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	user, err := io.ReadAll(response.Body)
	fmt.Println(string(user), err)
	// Output: jane <nil>
}
