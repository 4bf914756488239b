package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
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

// TestServe_ContextsWithTLS serves two contexts of one cluster to a user with a token.
func TestServe_ContextsWithTLS(t *testing.T) {
	t.Setenv("KUBECONFIG", cluster.Kubeconfig(t))
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
	go func() { served <- serve(ctx, []string{"admin", "token"}, listener, tlsConfig) }()
	defer func() {
		client.CloseIdleConnections()
		cancel()
		assert.ErrorIs(t, <-served, context.Canceled)
	}()
	get := func(c *assert.CollectT, path, token string) (code int, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String()+path, nil)
		require.NoError(c, err)
		request.SetBasicAuth("any", token)
		response, err := client.Do(request)
		require.NoError(c, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(c, err)
		return response.StatusCode, string(text)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, path := range []string{"/admin/", "/token/"} {
			code, body := get(c, path, token.Token.Reveal())
			assert.Equal(c, http.StatusOK, code, body)
			assert.Contains(c, body, `<a href="objects?kind=namespaces">`)
			code, _ = get(c, path, "wrong")
			assert.Equal(c, http.StatusUnauthorized, code)
		}
	}, time.Minute, time.Second/10)
}
