package transport_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// selfSigned is a client certificate and its key, in PEM.
func selfSigned(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// serveTLS gives a server that speaks HTTP/2 over TLS, asks for a client certificate and says who asked, and how.
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

func TestOpenSpeaksHTTP2WithTheCredentialsOfTheConfig(t *testing.T) {
	url, authority := serveTLS(t)
	certificate, key := selfSigned(t, "ann")
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	authorityFile, tokenFile := file("ca", authority), file("token", []byte("from-file\n"))

	for name, tc := range map[string]struct {
		cfg  transport.Config
		want string
	}{
		"anonymous":          {transport.Config{CAData: authority}, "HTTP/2.0 nobody "},
		"CA from a file":     {transport.Config{CAFile: authorityFile}, "HTTP/2.0 nobody "},
		"any server":         {transport.Config{Insecure: true}, "HTTP/2.0 nobody "},
		"token":              {transport.Config{CAData: authority, Token: transport.NewSecret("t")}, "HTTP/2.0 nobody Bearer t"},
		"token file":         {transport.Config{CAData: authority, Token: transport.NewSecret("t"), TokenFile: tokenFile}, "HTTP/2.0 nobody Bearer from-file"},
		"basic":              {transport.Config{CAData: authority, Username: "u", Password: transport.NewSecret("p")}, "HTTP/2.0 nobody Basic dTpw"},
		"certificate":        {transport.Config{CAData: authority, CertData: certificate, KeyData: transport.NewSecret(string(key))}, "HTTP/2.0 ann "},
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

func TestOpenRefusesAConfigThatCannotWorkAndShowsNoSecret(t *testing.T) {
	certificate, key := selfSigned(t, "ann")
	_, otherKey := selfSigned(t, "bob")
	const at = "https://127.0.0.1:1"
	for name, tc := range map[string]struct {
		cfg  *transport.Config
		says string
	}{
		"nil":                       {nil, "transport.Load"},
		"no server":                 {&transport.Config{}, "must look like https://host:port"},
		"a server without a scheme": {&transport.Config{Server: "127.0.0.1:6443"}, "must look like https://host:port"},
		"a password in the URL":     {&transport.Config{Server: "https://ann:s3cret@127.0.0.1"}, "holds a user"},
		"a broken URL":              {&transport.Config{Server: "https://ann:s3cret@%zz"}, "cannot be used"},
		"a query":                   {&transport.Config{Server: at + "?a=s3cret"}, "has a query"},
		"CA of no certificates":     {&transport.Config{Server: at, CAData: []byte("s3cret")}, "no PEM certificate"},
		"missing CA file":           {&transport.Config{Server: at, CAFile: "/missing/ca"}, "/missing/ca"},
		"CA and insecure":           {&transport.Config{Server: at, CAData: certificate, Insecure: true}, "exclude each other"},
		"certificate without key":   {&transport.Config{Server: at, CertData: certificate}, "one is missing"},
		"key of another":            {&transport.Config{Server: at, CertData: certificate, KeyData: transport.NewSecret(string(otherKey))}, "does not match"},
		"missing key file":          {&transport.Config{Server: at, CertData: certificate, KeyFile: "/missing/key"}, "/missing/key"},
		"token and user name":       {&transport.Config{Server: at, Token: transport.NewSecret("s3cret"), Username: "ann"}, "exclude each other"},
		"impersonating only groups": {&transport.Config{Server: at, Impersonate: transport.Impersonation{Groups: []string{"g"}}}, "needs a user"},
		"a proxy without a host":    {&transport.Config{Server: at, ProxyURL: "s3cret"}, "http://host:port"},
		"a proxy of another kind":   {&transport.Config{Server: at, ProxyURL: "ftp://s3cret@127.0.0.1"}, `"ftp"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := transport.Open(tc.cfg)
			require.ErrorContains(t, err, tc.says)
			assert.NotContains(t, err.Error(), "s3cret")
			assert.NotContains(t, err.Error(), string(key))
		})
	}
}

func TestATokenFileThatCannotBeReadFailsTheRequestAndNotTheProgram(t *testing.T) {
	_, err := ask(t, &transport.Config{Server: "http://127.0.0.1:1", TokenFile: "/missing/token"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "read the bearer token")
}

func TestImpersonationIsSentWithEveryRequest(t *testing.T) {
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

func TestAConfigPrintsWithoutItsSecrets(t *testing.T) {
	cfg := transport.Config{Server: "https://c", Token: transport.NewSecret("s3cret"), Password: transport.NewSecret("s3cret"), Username: "u", KeyData: transport.NewSecret("s3cret"), CertData: []byte("x")}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{cfg, &cfg} {
			text := fmt.Sprintf(format, value)
			assert.NotContains(t, text, "s3cret", format)
			assert.Contains(t, text, "https://c", format)
		}
	}
}
