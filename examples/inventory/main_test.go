package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestListen_WithoutTLS(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0"} {
		_, _, err := listen(address, "", "")
		assert.ErrorContains(t, err, "not a loopback address")
	}
	_, _, err := listen("127.0.0.1:0", "none", "")
	require.Error(t, err)
	listener, tlsConfig, err := listen("localhost:0", "", "")
	require.NoError(t, err)
	listener.Close()
	assert.Nil(t, tlsConfig)
}

// moreContexts has a context with a name to escape in a URL, and a context of a cluster that is down.
const moreContexts = `
apiVersion: v1
kind: Config
contexts:
- {name: "east {1}", context: {cluster: sandbox, user: token}}
- {name: down, context: {cluster: down, user: token}}
clusters: [{name: down, cluster: {server: "https://127.0.0.1:1"}}]
`

// TestServe_ContextsWithTLS serves contexts of a cluster to a user with a token.
func TestServe_ContextsWithTLS(t *testing.T) {
	more := filepath.Join(t.TempDir(), "more")
	require.NoError(t, os.WriteFile(more, []byte(moreContexts), 0o600))
	t.Setenv("KUBECONFIG", cluster.Kubeconfig(t)+string(filepath.ListSeparator)+more)
	token, err := transport.Load(t.Context(), &transport.LoadOptions{Context: "token"})
	require.NoError(t, err)
	certificate, key := credentials.NewCertificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	certFile := filepath.Join(t.TempDir(), "tls.crt")
	keyFile := filepath.Join(t.TempDir(), "tls.key")
	require.NoError(t, os.WriteFile(certFile, certificate, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	listener, tlsConfig, err := listen("127.0.0.1:0", certFile, keyFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- serve(ctx, []string{"token", "admin", "down", "east {1}", "admin"}, listener, tlsConfig)
	}()
	defer func() {
		client.CloseIdleConnections()
		cancel()
		assert.ErrorIs(t, <-served, context.Canceled)
	}()
	get := func(t require.TestingT, path, token string) (response *http.Response, body string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+listener.Addr().String()+path, nil)
		require.NoError(t, err)
		request.SetBasicAuth("any", token)
		response, err = client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response, string(text)
	}
	realms := map[string]bool{}
	for _, path := range []string{"/admin/", "/token/", "/east%20%7B1%7D/"} {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			response, body := get(t, path, token.Token.Reveal())
			assert.Equal(t, http.StatusOK, response.StatusCode, body)
			assert.Contains(t, body, `<a href="objects?kind=namespaces">`)
		}, time.Minute, time.Second/10)
		response, body := get(t, path, "wrong-token")
		assert.Equal(t, http.StatusUnauthorized, response.StatusCode)
		assert.NotContains(t, body, "wrong-token")
		realms[response.Header.Get("WWW-Authenticate")] = true
	}
	assert.Len(t, realms, 3, "a browser sends a token to one cluster alone")
	response, body := get(t, "/down/", token.Token.Reveal())
	assert.Equal(t, http.StatusBadGateway, response.StatusCode, body)
	response, _ = get(t, "/admin/", strings.Repeat("x", 100<<10))
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
}
