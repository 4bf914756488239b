package apitest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Client returns a client of the server with all rights. All clients share connections, which the server closes in Close.
func (s *Server) Client() *dynamic.Client { return dynamic.New(s.conn, nil) }

// openConn opens the shared connection of Client.
func (s *Server) openConn() error {
	conn, err := transport.Open(s.Config())
	if err != nil {
		return err
	}
	s.conn = conn
	s.closeLater(conn.Close)
	return nil
}

// Config returns a configuration with all rights, for [transport.Open] and [dynamic.Connect]. With Options.InMemory its Dial connects
// to the server.
func (s *Server) Config() *transport.Config {
	cfg := &transport.Config{Server: s.URL, Token: kubeconfig.NewSecret(adminToken)}
	if s.options.InMemory {
		cfg.Dial = s.memory.dial
		return cfg
	}
	if authority, err := sharedAuthority(); err == nil {
		cfg.CAData = authority.caPEM
	}
	return cfg
}

// HTTPClient returns a client that trusts and reaches the server. Requests without an Authorization header are authenticated as a
// user with all rights.
func (s *Server) HTTPClient() *http.Client {
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	if s.options.InMemory {
		base.DialContext = s.memory.dial
	} else {
		pool := x509.NewCertPool()
		if authority, err := sharedAuthority(); err == nil {
			pool.AddCert(authority.ca)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		base.ForceAttemptHTTP2 = true
	}
	s.closeLater(base.CloseIdleConnections)
	return &http.Client{Transport: &adminTransport{base}}
}

// closeLater calls f when the server is closed.
func (s *Server) closeLater(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onClose = append(s.onClose, f)
}

// adminTransport adds the admin token to requests without an Authorization header.
type adminTransport struct{ base *http.Transport }

// RoundTrip implements http.RoundTripper.
func (a *adminTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+adminToken)
	}
	return a.base.RoundTrip(req)
}

// CloseIdleConnections is for http.Client.
func (a *adminTransport) CloseIdleConnections() { a.base.CloseIdleConnections() }

// KubeconfigData returns a kubeconfig for the server with all rights, for kubectl, client-go and programs in any language. It is
// of no use with Options.InMemory: nothing can connect to its server URL.
func (s *Server) KubeconfigData() ([]byte, error) {
	cluster := map[string]any{"server": s.URL}
	if authority, err := sharedAuthority(); err != nil {
		return nil, err
	} else if !s.options.InMemory {
		cluster["certificate-authority-data"] = authority.caPEM
	}
	const name = "apitest"
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": cluster}},
		"users":    []any{map[string]any{"name": name, "user": map[string]any{"token": adminToken}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	})
}

// Kubeconfig returns the path of a file with KubeconfigData, in a directory that is removed with the test.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	data, err := s.KubeconfigData()
	if err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return path
}
