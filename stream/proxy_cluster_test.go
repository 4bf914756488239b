package stream_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

// program is an HTTP server on an address that the API server is willing to proxy to: none of loopback.
func program(t *testing.T, secure bool, handler http.HandlerFunc) (ip string, port int) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || !network.IP.IsGlobalUnicast() || network.IP.To4() == nil {
			continue
		}
		listener, err := net.Listen("tcp", network.IP.String()+":0")
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(handler)
		require.NoError(t, server.Listener.Close())
		server.Listener = listener
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		return network.IP.String(), listener.Addr().(*net.TCPAddr).Port
	}
	cluster.Skipf(t, "needs an IPv4 address other than loopback's, to which no API server proxies")
	return "", 0
}

// behind makes the address that of a pod.
func behind(t *testing.T, pods *dynamic.Resource, pod, ip string) {
	t.Helper()
	run(t, pods, named(pod), "web")
	_, err := pods.Subresource("status").Patch(t.Context(), pod, "application/merge-patch+json",
		[]byte(fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, ip, ip)), nil)
	require.NoError(t, err)
}

func fetch(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestProxy_Pod(t *testing.T) {
	pods := podsOf(t)
	ip, port := program(t, false, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/echo?after=moved", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://elsewhere.example.com/", http.StatusFound)
		case "/aside":
			http.Redirect(w, r, "http://other:80/", http.StatusFound)
		case "/missing":
			http.Error(w, "not here", http.StatusNotFound)
		default:
			assert.Empty(t, r.Header.Get("Authorization"), "the credential is the API server's alone")
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("X-Own"), body)
		}
	})
	behind(t, pods, "web-0", ip)
	client := &http.Client{Transport: stream.Proxy(pods)}
	base := fmt.Sprintf("http://web-0:%d", port)

	for path, want := range map[string]string{
		"":                            "GET / ",
		"/":                           "GET / ",
		"/a/b/":                       "GET /a/b/ ",
		"/a%20b/%C3%A4?q=1%2F2&q=+&r": "GET /a%20b/%C3%A4?q=1%2F2&q=+&r ",
		"/a;b=c/d:e@f,$":              "GET /a;b=c/d:e@f,$ ",
		"/%25/%3F/%23":                "GET /%25/%3F/%23 ",
		"/a//b":                       "GET /a/b ", // the API server merges them
		"/moved":                      "GET /echo?after=moved ",
	} {
		code, body := fetch(t, client, base+path)
		assert.Equal(t, 200, code, path)
		assert.Equal(t, want, strings.TrimRight(body, " ")+" ", path)
	}
	code, body := fetch(t, client, base+"/missing")
	assert.Equal(t, 404, code)
	assert.Equal(t, "not here\n", body)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, base+"/x", strings.NewReader("sent"))
	require.NoError(t, err)
	request.Header.Set("X-Own", "mine")
	response, err := client.Do(request)
	require.NoError(t, err)
	sent, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, "PUT /x mine sent", string(sent))

	for path, want := range map[string]string{
		"/away":     "leads to another host",
		"/aside":    "leads to another host",
		"/a%2fb":    "would change the path",
		"/a/../b":   "would change the path",
		"/%2E%2e/b": "would change the path",
		"/.":        "would change the path",
	} {
		_, err := client.Get(base + path)
		require.ErrorContains(t, err, want, path)
	}
	for _, url := range []string{"http://user:secret@web-0/", "ftp://web-0/", "http:///x"} {
		_, err := client.Get(url)
		require.Error(t, err, url)
		assert.NotContains(t, err.Error(), "secret")
	}
	request.Header = http.Header{"Authorization": {"Bearer mine"}}
	_, err = client.Do(request)
	require.ErrorContains(t, err, "Authorization")
	assert.NotContains(t, err.Error(), "mine")
	code, body = fetch(t, client, "http://none:80/")
	assert.Equal(t, 404, code)
	assert.Contains(t, body, `"kind":"Status"`)
}

func TestProxy_TLSAndStreaming(t *testing.T) {
	pods := podsOf(t)
	next := make(chan string)
	ip, port := program(t, true, func(w http.ResponseWriter, r *http.Request) {
		for text := range next {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	})
	behind(t, pods, "web-0", ip)
	response, err := (&http.Client{Transport: stream.Proxy(pods)}).Do(func() *http.Request {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://web-0:%d/", port), nil)
		require.NoError(t, err)
		go func() { next <- "first\n" }()
		return request
	}())
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "first\n", line) // while the program goes on
	next <- "second\n"
	close(next)
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "second\n", line)
	_, err = lines.ReadString('\n')
	require.Equal(t, io.EOF, err)
}

func TestProxy_Upgrade(t *testing.T) {
	pods := podsOf(t)
	ip, port := program(t, false, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "websocket", r.Header.Get("Upgrade"))
		memconn.SwitchProtocols("Connection: Upgrade\r\nUpgrade: websocket\r\n", "")(w, r)
	})
	behind(t, pods, "web-0", ip)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://web-0:%d/", port), nil)
	require.NoError(t, err)
	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	response, err := stream.Proxy(pods).RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	echo(t, response.Body.(io.ReadWriter), "any bytes")
}

func TestProxy_ServiceAndNode(t *testing.T) {
	pods := podsOf(t)
	ip, port := program(t, false, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.URL.Path) })
	behind(t, pods, "web-0", ip)
	client := connect(t, "admin")
	services := resourceIn(t, client, "services", pods)
	_, err := services.Create(t.Context(), service("web", 80, int64(port)), nil)
	require.NoError(t, err)
	through := &http.Client{Transport: stream.Proxy(services)}
	deadline := time.Now().Add(patience)
	for {
		code, body := fetch(t, through, "http://web:80/path")
		if code == 200 {
			assert.Equal(t, "served /path", body)
			break
		}
		require.True(t, time.Now().Before(deadline), "%d %s", code, body) // until the service has endpoints
		time.Sleep(50 * time.Millisecond)
	}

	// The sandbox's nodes are at an address that the API server does not proxy to, and says so: it knows the node.
	nodes, err := client.Resource(t.Context(), "nodes")
	require.NoError(t, err)
	node := &http.Client{Transport: stream.Proxy(nodes)}
	code, body := fetch(t, node, "https://node-1:10250/healthz")
	assert.Equal(t, 400, code)
	assert.Contains(t, body, "address not allowed")
	code, _ = fetch(t, node, "http://none/healthz")
	assert.Equal(t, 404, code)

	deployments := resourceIn(t, client, "deployments", pods)
	_, err = (&http.Client{Transport: stream.Proxy(deployments)}).Get("http://web/")
	require.ErrorContains(t, err, "only to pods, services and nodes")
}

// resourceIn is a handle in the namespace of another.
func resourceIn(t testing.TB, client *dynamic.Client, name string, as *dynamic.Resource) *dynamic.Resource {
	t.Helper()
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	path, err := as.Path("")
	require.NoError(t, err)
	return found.Namespace(strings.Split(path, "/")[4])
}

// service selects the pods that named makes.
func service(name string, port int, target any) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"selector": map[string]any{"app": "web"},
			"ports":    []any{map[string]any{"name": "http", "port": int64(port), "targetPort": target}},
		},
	}}
}
