package pod

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

const acceptedPage = "http://localhost:3000"

// newProxy serves the proxy's handler before a server.
func newProxy(t *testing.T, backend http.HandlerFunc, acceptOrigins string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)
	conn, err := transport.New(server.URL, nil, nil)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	o := &proxyOptions{filter: defaultProxyFilter(), apiPrefix: "/"}
	o.filter.acceptOrigins = acceptOrigins
	o.filter.rejectMethods = "^DELETE$"
	require.NoError(t, o.filter.compile())
	proxy := httptest.NewServer(o.handler(conn, target))
	t.Cleanup(proxy.Close)
	return proxy
}

func TestProxy_CORS(t *testing.T) {
	const passedOn = 299
	backend := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(allowOrigin, "https://server.example") // as with kube-apiserver --cors-allowed-origins
		w.Header().Set("Vary", "Accept")
		w.WriteHeader(passedOn)
	}
	preflight := func(origin, method string) http.Header {
		return http.Header{
			"Origin": {origin}, "Sec-Fetch-Site": {"cross-site"},
			requestMethod: {method}, requestHeaders: {"content-type,x-example"},
		}
	}
	page := http.Header{"Origin": {acceptedPage}, "Sec-Fetch-Site": {"same-site"}}
	for _, c := range []struct {
		name, accept, method, path string
		header                     http.Header
		code                       int
		origin                     string // Access-Control-Allow-Origin
	}{
		{"fetch", "^" + acceptedPage + "$", "GET", "/api", page, passedOn, acceptedPage},
		{"fetch of a rejected path", "^" + acceptedPage + "$", "GET", "/api/v1/namespaces/a/pods/x/exec", page, 403, ""},
		{"no browser", "^" + acceptedPage + "$", "GET", "/api", nil, passedOn, "https://server.example"},
		{"another origin", "^" + acceptedPage + "$", "GET", "/api", http.Header{"Origin": {"http://evil.example"}}, 403, ""},
		{"opaque origin", "^null$", "POST", "/api", http.Header{"Origin": {"null"}}, passedOn, "null"},
		{"two origins", "^" + acceptedPage + "$", "GET", "/api", http.Header{"Origin": {acceptedPage, acceptedPage}}, passedOn, "https://server.example"},
		{"without --accept-origins", "", "GET", "/api", page, 403, ""},
		{"preflight", "^" + acceptedPage + "$", "OPTIONS", "/api", preflight(acceptedPage, "PATCH"), 204, acceptedPage},
		{"preflight of a rejected method", "^" + acceptedPage + "$", "OPTIONS", "/api", preflight(acceptedPage, "DELETE"), 403, acceptedPage},
		{"preflight of a rejected path", "^" + acceptedPage + "$", "OPTIONS", "/api/v1/namespaces/a/pods/x/exec", preflight(acceptedPage, "GET"), 403, ""},
		{"preflight of another origin", "^" + acceptedPage + "$", "OPTIONS", "/api", preflight("http://evil.example", "GET"), 403, ""},
		{"preflight without --accept-origins", "", "OPTIONS", "/api", preflight(acceptedPage, "GET"), 403, ""},
		{"other OPTIONS", "^" + acceptedPage + "$", "OPTIONS", "/api", page, passedOn, acceptedPage},
		{"OPTIONS of no browser", "^" + acceptedPage + "$", "OPTIONS", "/api", http.Header{requestMethod: {"GET"}}, passedOn, "https://server.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), c.method, newProxy(t, backend, c.accept).URL+c.path, nil)
			require.NoError(t, err)
			maps.Copy(request.Header, c.header)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, c.code, response.StatusCode)
			assert.Equal(t, c.origin, strings.Join(response.Header.Values(allowOrigin), " and "))
			if c.origin == c.header.Get("Origin") && c.origin != "" {
				assert.Contains(t, strings.Join(response.Header.Values("Vary"), ", "), "Origin")
			}
			if c.code == 204 {
				assert.Equal(t, "PATCH", response.Header.Get("Access-Control-Allow-Methods"))
				assert.Equal(t, "content-type,x-example", response.Header.Get("Access-Control-Allow-Headers"))
			} else {
				assert.Empty(t, response.Header.Get("Access-Control-Allow-Methods"))
			}
		})
	}
}

// Python's websocket-client sends the address of the proxy as Origin.
func TestProxy_UpgradesClientWithOwnOrigin(t *testing.T) {
	proxy := newProxy(t, func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // net/http's writer is one
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, "got "+line)
	}, "")
	for origin, code := range map[string]int{proxy.URL: 101, acceptedPage: 403} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+"/api/v1/pods?watch=1", nil)
		require.NoError(t, err)
		request.Header = http.Header{"Origin": {origin}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		assert.Equal(t, code, response.StatusCode, origin)
		if stream, isStream := response.Body.(io.ReadWriter); code == 101 && assert.True(t, isStream) {
			_, err = io.WriteString(stream, "hello\n")
			require.NoError(t, err)
			line, err := bufio.NewReader(stream).ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "got hello\n", line)
		}
		require.NoError(t, response.Body.Close())
	}
}
