package manifest_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured/manifest"
)

// manifestServer serves configMap("a") at /ok, and a response for each case of TestReader_URLErrors.
func manifestServer(t *testing.T) *httptest.Server {
	t.Helper()
	failures := atomic.Int32{}
	mux := http.NewServeMux()
	handle := func(path string, handler http.HandlerFunc) { mux.HandleFunc(path, handler) }
	handle("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(configMap("a"))) })
	handle("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	handle("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	handle("/down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	handle("/twice", func(w http.ResponseWriter, _ *http.Request) {
		if failures.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(configMap("a")))
	})
	handle("/private", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	handle("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>"))
	})
	handle("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(configMap("a") + "---\n" + configMap("b")))
	})
	handle("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(configMap("a") + "---\n"))
		line := []byte("# " + strings.Repeat("x", 1<<20) + "\n")
		for range 65 {
			_, _ = w.Write(line)
		}
		_, _ = w.Write([]byte(configMap("b")))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestReader_URL(t *testing.T) {
	server := manifestServer(t)
	for _, path := range []string{"/ok", "/ok?token=secret", "/moved", "/twice"} {
		objects, err := (&manifest.Reader{Paths: []string{server.URL + path}}).Read(t.Context())
		require.NoError(t, err, path)
		require.Len(t, objects, 1)
		source, _, _ := strings.Cut(server.URL+path, "?")
		assert.Equal(t, source+": document 1, line 1", objects[0].Position())
	}
}

func TestReader_URLErrors(t *testing.T) {
	server := manifestServer(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, want := range map[string]string{
		server.URL + "/none?token=secret": "/none: the server reported 404 Not Found (check the URL)",
		server.URL + "/private":           "/private: the server reported 403 Forbidden (no credentials are sent: download the file)",
		server.URL + "/down":              "/down: the server reported 502 Bad Gateway",
		server.URL + "/loop":              "/loop: stopped after 10 redirects",
		server.URL + "/page":              "/page: the server sent a page of HTML, not a manifest (use the URL of the raw file)",
		closed.URL + "/ok?token=secret":   "connection refused",
		"http://":                         "read http://: not a valid URL",
		"https://%zz/secret":              "not a valid URL",
		"http://user:secret@127.0.0.1/a":  "@127.0.0.1/a: a URL with a user is not supported, credentials are not sent (run: curl -sSLf URL | … -f -)",
	} {
		names, err := read(t, &manifest.Reader{Paths: []string{url}})
		require.ErrorContains(t, err, want, url)
		assert.Empty(t, names, url)
		assert.NotContains(t, err.Error(), "token=secret")
		assert.NotContains(t, err.Error(), "user:secret")
	}
}

func TestReader_URLIncompleteBody(t *testing.T) {
	server := manifestServer(t)
	for path, want := range map[string]string{"/short": "/short: reading YAML behind line 9: unexpected EOF", "/large": "/large: reading YAML behind line 68: the body is larger than 64 MiB (download the file)"} {
		names, err := read(t, &manifest.Reader{Paths: []string{server.URL + path}})
		assert.ErrorContains(t, err, want)
		assert.Equal(t, []string{"a"}, names, path)
	}
}

// TestReader_URLWithoutCredentials redirects to a URL with a user, after a response that sets a cookie.
func TestReader_URLWithoutCredentials(t *testing.T) {
	mu := sync.Mutex{}
	var headers []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		headers = append(headers, r.Header)
		if r.URL.Path == "/start" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
			http.Redirect(w, r, "http://user:secret@"+r.Host+"/end", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(configMap("a")))
	}))
	t.Cleanup(server.Close)
	names, err := read(t, &manifest.Reader{Paths: []string{server.URL + "/start"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names)
	require.Len(t, headers, 2)
	for _, header := range headers {
		assert.Empty(t, header["Authorization"])
		assert.Empty(t, header["Cookie"])
	}
}

func TestReader_URLRedirectToPlainHTTP(t *testing.T) {
	plain := manifestServer(t)
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/ok?token=secret", http.StatusFound))
	t.Cleanup(server.Close)
	previous := http.DefaultTransport
	http.DefaultTransport = server.Client().Transport // trusts the server
	t.Cleanup(func() { http.DefaultTransport = previous })
	permissive := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	toTLS := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusFound))
	t.Cleanup(toTLS.Close)
	for _, url := range []string{server.URL, toTLS.URL} {
		for _, client := range []*http.Client{nil, {}, permissive} {
			_, err := read(t, &manifest.Reader{Paths: []string{url}, Client: client})
			assert.EqualError(t, err, "read "+url+": redirect to "+plain.URL+"/ok rejected: it is not encrypted")
		}
	}
}

func TestReader_URLRedirectsOfClient(t *testing.T) {
	server := manifestServer(t)
	client := server.Client()
	names, err := read(t, &manifest.Reader{Paths: []string{server.URL + "/moved"}, Client: client})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, err = read(t, &manifest.Reader{Paths: []string{server.URL + "/moved"}, Client: client})
	assert.ErrorContains(t, err, "302 Found")
}

func TestReader_URLWithClient(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(configMap("a"))) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	names, err := read(t, &manifest.Reader{Paths: []string{server.URL}, Client: server.Client()})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names)
	_, err = read(t, &manifest.Reader{Paths: []string{server.URL}})
	assert.ErrorContains(t, err, "certificate")
}

func TestReader_URLEndsWithContext(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(configMap("a") + "---\n"))
		_ = http.NewResponseController(w).Flush()
		cancel(cause)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	_, err := (&manifest.Reader{Paths: []string{server.URL}}).Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, cause)
}
