//go:build unix

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/internal/build"
)

func openTestCache(t *testing.T, dir string) *build.Cache {
	t.Helper()
	cache, err := build.OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// startCluster starts a cluster for the test, or skips the test if programs
// must be built first and ANYKIND_REQUIRE_SANDBOX is not 1.
func startCluster(t *testing.T, opts *Options) *Cluster {
	t.Helper()
	needBinaries(t, opts)
	opts.Progress = os.Stderr
	c, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

func needBinaries(t *testing.T, opts *Options) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster: run without -short")
	}
	if os.Getenv("ANYKIND_REQUIRE_SANDBOX") == "1" {
		return
	}
	o, err := opts.Complete()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := build.OpenCache(o.CacheDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range o.Components {
		if !cache.Has(o.binary(c)) {
			t.Skipf("needs %s, which is not built yet: run `make test`", c)
		}
	}
}

// contextConfig is the content of a kubeconfig context.
type contextConfig struct {
	server, token string
	ca, cert, key []byte
}

// readKubeconfig parses a file written from kubeconfigText.
func readKubeconfig(t *testing.T, path, context string) *contextConfig {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "- name: "+context+"\n  context: {cluster: sandbox, user: "+context+",") {
		t.Fatalf("%s has no context %s:\n%s", path, context, text)
	}
	_, user, _ := strings.Cut(string(text), "- name: "+context+"\n  user:\n")
	user, _, _ = strings.Cut(user, "- name:")
	field := func(text, name string) string {
		if m := regexp.MustCompile(`(?m)^ +` + name + `: (\S+)$`).FindStringSubmatch(text); m != nil {
			return m[1]
		}
		return ""
	}
	decoded := func(text, name string) []byte {
		data, err := base64.StdEncoding.DecodeString(field(text, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return &contextConfig{
		server: field(string(text), "server"), ca: decoded(string(text), "certificate-authority-data"),
		token: field(user, "token"), cert: decoded(user, "client-certificate-data"), key: decoded(user, "client-key-data"),
	}
}

// caller sends requests as the user of a kubeconfig context.
type caller struct {
	t      *testing.T
	id     *contextConfig
	client *http.Client
}

func newCaller(t *testing.T, kubeconfig, context string) *caller {
	t.Helper()
	id := readKubeconfig(t, kubeconfig, context)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(id.ca)
	config := &tls.Config{RootCAs: roots}
	if len(id.cert) > 0 {
		pair, err := tls.X509KeyPair(id.cert, id.key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{t, id, &http.Client{Transport: tokenTransport{id.token, transport}, Timeout: 20 * time.Second}}
}

type tokenTransport struct {
	token string
	next  http.RoundTripper
}

func (t tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.next.RoundTrip(r)
}

// send sends body, if any, and returns the status code.
func (c *caller) send(method, path string, body, result any) int {
	c.t.Helper()
	err := send(c.t.Context(), c.client, method, c.id.server+path, body, result)
	var status *statusError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &status):
		return status.code
	}
	c.t.Fatalf("%s %s: %v", method, path, err)
	return 0
}

// must is send, and fails the test unless it succeeds.
func (c *caller) must(method, path string, body, result any) {
	c.t.Helper()
	if code := c.send(method, path, body, result); code != http.StatusOK {
		c.t.Fatalf("%s %s responded with %d", method, path, code)
	}
}

type object struct {
	Metadata struct{ Name, ResourceVersion string } `json:"metadata"`
	Data     map[string]string                      `json:"data"`
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func configMap(name, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]string{"name": name}, "data": map[string]string{"key": value},
	}
}
