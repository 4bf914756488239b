package transport_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConn_ShowsCertificateOfUnlistedIssuer has a server that names other authorities than the certificate's issuer and
// accepts it all the same, as kube-apiserver does while authorities are replaced.
func TestConn_ShowsCertificateOfUnlistedIssuer(t *testing.T) {
	certificate, key := selfSigned(t, "ann")
	other, _ := selfSigned(t, "another authority")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, shown := range r.TLS.PeerCertificates {
			_, _ = io.WriteString(w, shown.Subject.CommonName)
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, ClientCAs: x509.NewCertPool()}
	require.True(t, server.TLS.ClientCAs.AppendCertsFromPEM(other))
	server.StartTLS()
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, Insecure: true, CertData: certificate, KeyData: transport.NewSecret(string(key))})
	require.NoError(t, err)
	defer conn.Close()
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/"})
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "ann", string(body))
}
