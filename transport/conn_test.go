package transport_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// serveTLS starts a server that requests a client certificate over TLS and returns its name with the protocol and header.
func serveTLS(t *testing.T) (url string, authority []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Proto, name, r.Header.Get("Authorization"))
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func ask(t *testing.T, cfg *transport.Config) (string, error) {
	t.Helper()
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	defer conn.Close()
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/"})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body), nil
}

func TestOpen_AuthenticatesOverHTTP2(t *testing.T) {
	url, authority := serveTLS(t)
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	authorityFile := file("ca", authority)
	tokenFile := file("token", []byte("from-file\n"))

	for name, tc := range map[string]struct {
		cfg  transport.Config
		want string
	}{
		"anonymous":          {transport.Config{CAData: authority}, "HTTP/2.0 nobody "},
		"CA from a file":     {transport.Config{CAFile: authorityFile}, "HTTP/2.0 nobody "},
		"any server":         {transport.Config{Insecure: true}, "HTTP/2.0 nobody "},
		"token":              {transport.Config{CAData: authority, Token: kubeconfig.NewSecret("t")}, "HTTP/2.0 nobody Bearer t"},
		"token file":         {transport.Config{CAData: authority, Token: kubeconfig.NewSecret("t"), TokenFile: tokenFile}, "HTTP/2.0 nobody Bearer from-file"},
		"basic":              {transport.Config{CAData: authority, Username: "u", Password: kubeconfig.NewSecret("p")}, "HTTP/2.0 nobody Basic dTpw"},
		"certificate":        {transport.Config{CAData: authority, CertData: certificate, KeyData: kubeconfig.NewSecret(string(key))}, "HTTP/2.0 ann "},
		"certificate, files": {transport.Config{CAData: authority, CertFile: file("crt", certificate), KeyFile: file("key", key)}, "HTTP/2.0 ann "},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Server = url
			got, err := ask(t, &tc.cfg)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}

	_, err := ask(t, &transport.Config{Server: url})
	require.ErrorContains(t, err, "certificate", "the system's roots do not know this server")
	_, err = ask(t, &transport.Config{Server: url, CAData: authority, ServerName: "other.example"})
	require.ErrorContains(t, err, "other.example")
}

func TestOpen_RejectsInvalidConfig(t *testing.T) {
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	_, otherKey := credentials.NewCertificate(t, "bob", time.Now().Add(time.Hour))
	const at = "https://127.0.0.1:1"
	for name, tc := range map[string]struct {
		cfg  *transport.Config
		want string
	}{
		"nil":                       {nil, "transport.Load"},
		"no server":                 {&transport.Config{}, "must look like https://host:port"},
		"a server without a scheme": {&transport.Config{Server: "127.0.0.1:6443"}, "must look like https://host:port"},
		"a password in the URL":     {&transport.Config{Server: "https://ann:s3cret@127.0.0.1"}, "it has a user"},
		"a broken URL":              {&transport.Config{Server: "https://ann:s3cret@%zz"}, "must look like https://host:port"},
		"a query":                   {&transport.Config{Server: at + "?a=s3cret"}, "has a query"},
		"an empty query":            {&transport.Config{Server: at + "?"}, "has a query"},
		"CA of no certificates":     {&transport.Config{Server: at, CAData: []byte("s3cret")}, "no PEM certificate"},
		"missing CA file":           {&transport.Config{Server: at, CAFile: "/missing/ca"}, "/missing/ca"},
		"CA and insecure":           {&transport.Config{Server: at, CAData: certificate, Insecure: true}, "exclude each other"},
		"certificate without key":   {&transport.Config{Server: at, CertData: certificate}, "one is missing"},
		"key of another":            {&transport.Config{Server: at, CertData: certificate, KeyData: kubeconfig.NewSecret(string(otherKey))}, "does not match"},
		"missing key file":          {&transport.Config{Server: at, CertData: certificate, KeyFile: "/missing/key"}, "/missing/key"},
		"token and user name":       {&transport.Config{Server: at, Token: kubeconfig.NewSecret("s3cret"), Username: "ann"}, "exclude each other"},
		"impersonating only groups": {&transport.Config{Server: at, Impersonate: transport.Impersonation{Groups: []string{"g"}}}, "needs a user"},
		"a proxy without a host":    {&transport.Config{Server: at, ProxyURL: kubeconfig.NewSecret("s3cret")}, "http://host:port"},
		"a proxy of another kind":   {&transport.Config{Server: at, ProxyURL: kubeconfig.NewSecret("ftp://s3cret@127.0.0.1")}, `"ftp"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := transport.Open(tc.cfg)
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "s3cret")
			assert.NotContains(t, err.Error(), string(key))
		})
	}
}

func TestConn_DoUnreadableTokenFile(t *testing.T) {
	_, err := ask(t, &transport.Config{Server: "http://127.0.0.1:1", TokenFile: "/missing/token"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "read the bearer token")
}

func TestConfig_Impersonate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header["Impersonate-User"], r.Header["Impersonate-Uid"], r.Header["Impersonate-Group"],
			r.Header["Impersonate-Extra-Acme.com%2fteam"])
	}))
	defer server.Close()
	got, err := ask(t, &transport.Config{Server: server.URL, Impersonate: transport.Impersonation{
		User: "bob", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"acme.com/Team": {"x"}},
	}})
	require.NoError(t, err)
	assert.Equal(t, "[bob] [7] [dev ops] [x]", got)
}

func TestConfig_DisableCompression(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		fmt.Fprint(compressed, "compressed")
		_ = compressed.Close()
	}))
	defer server.Close()
	for want, disable := range map[string]bool{"compressed": false, "plain": true} {
		got, err := ask(t, &transport.Config{Server: server.URL, DisableCompression: disable})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// TestConn_PresentsCertificateOfUnlistedIssuer has a server that names other authorities than the certificate's issuer and
// accepts it all the same, as kube-apiserver does while authorities are replaced.
func TestConn_PresentsCertificateOfUnlistedIssuer(t *testing.T) {
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	other, _ := credentials.NewCertificate(t, "another authority", time.Now().Add(time.Hour))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, shown := range r.TLS.PeerCertificates {
			_, _ = io.WriteString(w, shown.Subject.CommonName)
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, ClientCAs: x509.NewCertPool()}
	require.True(t, server.TLS.ClientCAs.AppendCertsFromPEM(other))
	server.StartTLS()
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, Insecure: true, CertData: certificate, KeyData: kubeconfig.NewSecret(string(key))})
	require.NoError(t, err)
	defer conn.Close()
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/"})
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "ann", string(body))
}

// closable counts the calls of CloseIdleConnections.
type closable struct {
	http.RoundTripper
	closed int
}

func (c *closable) CloseIdleConnections() { c.closed++ }

func TestNew_CloseOfWrappedTransport(t *testing.T) {
	for name, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
		"without a wrapper": nil,
		"with a wrapper":    func(next http.RoundTripper) http.RoundTripper { return roundTripper(next.RoundTrip) },
	} {
		inner := &closable{}
		conn, err := transport.New("http://server", &http.Client{Transport: inner}, &transport.Options{WrapTransport: wrap})
		require.NoError(t, err)
		conn.Close()
		assert.Equal(t, 1, inner.closed, name)
	}
}

func TestOpen_KeepsEscapedServerPath(t *testing.T) {
	var uri string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { uri = r.RequestURI }))
	defer server.Close()
	var resource string
	for path, want := range map[string]string{
		"/k8s%2Fclusters/c-1":  "/k8s%2Fclusters/c-1/api/v1/pods",
		"/k8s%2Fclusters%2F/":  "/k8s%2Fclusters%2F/api/v1/pods",
		"/a%20b":               "/a%20b/api/v1/pods",
		"/a b":                 "/a%20b/api/v1/pods",
		"/k8s//x/":             "/k8s//x/api/v1/pods",
		"/":                    "/api/v1/pods",
		"/k8s/clusters/%C3%A9": "/k8s/clusters/%C3%A9/api/v1/pods",
	} {
		conn, err := transport.Open(&transport.Config{Server: server.URL + path, Options: transport.Options{
			OnAttempt: func(_ context.Context, a transport.Attempt) { resource = a.Resource },
		}})
		require.NoError(t, err, path)
		require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/pods"}))
		assert.Equal(t, want, uri)
		assert.Equal(t, "pods", resource, path)
		conn.Close()
	}
}
