package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// asked is a request to a server.
func asked(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	return request
}

func TestConn_RoundTripAuthenticates(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"))
		assert.Regexp(t, "^anykind/", r.Header.Get("User-Agent"))
		assert.Empty(t, r.Header.Get("Accept"), "nothing is filled in that is not the connection's own")
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	}))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL + "/prefix", Token: kubeconfig.NewSecret("s3cret")})
	require.NoError(t, err)
	defer conn.Close()
	request := asked(t, http.MethodPut, server.URL+"/prefix/a%2Fb?c=d", "sent")
	response, err := conn.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "PUT /prefix/a%2Fb?c=d sent", string(body))
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	assert.Same(t, request, response.Request)
	assert.Empty(t, request.Header, "the request stays as it is")
}

func TestConn_RoundTripRejectsOtherHostsAndCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was made") }))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: "http://127.0.0.1:1", Token: kubeconfig.NewSecret("s3cret")})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.RoundTrip(asked(t, http.MethodGet, server.URL+"/x?password=hidden", ""))
	require.ErrorContains(t, err, "not on the credential's server")
	assert.NotContains(t, err.Error(), "hidden")
	for name, value := range map[string]string{
		"Authorization": "Basic hidden", "authorization": "Basic hidden", "Impersonate-User": "hidden", "X-Remote-Group": "hidden",
		"Sec-WebSocket-Protocol": "base64url.bearer.authorization.k8s.io.hidden, v4.channel.k8s.io",
	} {
		request := asked(t, http.MethodGet, "http://127.0.0.1:1/", "")
		request.Header[name] = []string{value}
		_, err = conn.RoundTrip(request)
		require.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), "hidden")
	}
	_, err = conn.RoundTrip(asked(t, http.MethodGet, "http://127.0.0.1:1/x?password=hidden", ""))
	require.ErrorContains(t, err, "GET http://127.0.0.1:1/x: ")
	assert.NotContains(t, err.Error(), "hidden")
}

func TestConn_RoundTripWithoutMethodAndHeader(t *testing.T) {
	var verbs []string
	conn, err := transport.Open(&transport.Config{Server: "http://127.0.0.1:1", Options: transport.Options{
		OnAttempt: func(_ context.Context, attempt transport.Attempt) {
			verbs = append(verbs, attempt.Method+" "+attempt.Verb)
		},
	}})
	require.NoError(t, err)
	defer conn.Close()
	request := asked(t, "", "http://127.0.0.1:1/api/v1/pods", "")
	request.Method = "" // http.NewRequest sets both
	request.Header = nil
	_, err = conn.RoundTrip(request)
	require.ErrorContains(t, err, "GET http://127.0.0.1:1/api/v1/pods: ")
	failed, ok := errors.AsType[*url.Error](err)
	require.True(t, ok)
	assert.Equal(t, "Get", failed.Op)
	assert.Equal(t, []string{"GET list"}, verbs)
}

func TestConn_RoundTripRenews(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	const status = `{"kind":"Status","status":"Failure","reason":"Unauthorized","code":401}`
	var requests int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") == "Bearer new" && r.URL.Path == "/" {
			fmt.Fprintf(w, "welcome %s", body)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		if r.URL.Path == "/program" {
			fmt.Fprint(w, `{"error":"log in"}`)
			return
		}
		fmt.Fprint(w, status)
	}))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, TokenFile: file})
	require.NoError(t, err)
	defer conn.Close()
	do := func(path string, change func(*http.Request)) string {
		request := asked(t, http.MethodPost, server.URL+path, "again")
		change(request)
		response, err := conn.RoundTrip(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(body)
	}
	unchanged := func(*http.Request) {}
	assert.Equal(t, status, do("/", unchanged)) // there is no other yet
	require.NoError(t, os.WriteFile(file, []byte("new"), 0o600))
	requests = 0
	assert.Equal(t, `{"error":"log in"}`, do("/program", unchanged), "a program behind the server cannot cause a renewal")
	assert.Equal(t, 1, requests)
	assert.Equal(t, status, do("/", func(r *http.Request) { r.GetBody = nil }), "a body that cannot be had again")
	assert.Equal(t, "welcome again", do("/", unchanged))
}
