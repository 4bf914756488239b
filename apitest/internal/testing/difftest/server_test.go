package difftest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// server is an API server that requests are sent to as they are.
type server struct {
	url    string
	token  string
	client *http.Client
}

// connect returns the server of the current context of a kubeconfig.
func connect(t testing.TB, path string) *server {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate string `json:"client-certificate-data"`
				Key         string `json:"client-key-data"`
				Token       string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	decode := func(encoded string) []byte {
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		return decoded
	}
	cluster := config.Clusters[0].Cluster
	s := &server{url: cluster.Server}
	tlsConfig := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if cluster.CA != "" {
		require.True(t, tlsConfig.RootCAs.AppendCertsFromPEM(decode(cluster.CA)))
	}
	if len(config.Users) > 0 {
		user := config.Users[0].User
		s.token = user.Token
		if user.Certificate != "" {
			certificate, err := tls.X509KeyPair(decode(user.Certificate), decode(user.Key))
			require.NoError(t, err)
			tlsConfig.Certificates = []tls.Certificate{certificate}
		}
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// open sends a request and returns the response with its body open.
func (s *server) open(t testing.TB, method, path, contentType, accept, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if accept == "" {
		accept = "application/json"
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "difftest")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(req)
	require.NoError(t, err, "%s %s", method, path)
	return response
}

func (s *server) do(t testing.TB, method, path, contentType, accept, body string) Answer {
	t.Helper()
	response := s.open(t, method, path, contentType, accept, body)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err := io.Copy(&text, response.Body)
	require.NoError(t, err, "%s %s", method, path)
	return Answer{
		Status: response.StatusCode, Body: text.String(),
		ContentType: response.Header.Get("Content-Type"), Warnings: response.Header.Values("Warning"),
	}
}
