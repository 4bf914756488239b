package difftest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// Server is an API server for raw requests.
type Server struct {
	// Restart and Compact execute the operations methodRestart and methodCompact.
	Restart, Compact func(t testing.TB)

	url       string
	token     string
	client    *http.Client
	transport *http.Transport
}

// Sandbox returns the sandbox's kube-apiserver.
func Sandbox(t testing.TB) *Server {
	t.Helper()
	s := Connect(t, cluster.Kubeconfig(t))
	s.Restart = func(t testing.TB) { t.Helper(); cluster.RestartAPIServer(t, false) }
	s.Compact = func(t testing.TB) { t.Helper(); cluster.Compact(t) }
	return s
}

// Double returns an apitest server. opts may be nil.
func Double(t testing.TB, opts *apitest.Options) *Server {
	t.Helper()
	double := apitest.NewServer(t, opts)
	s := Connect(t, double.Kubeconfig(t))
	s.Restart = func(t testing.TB) { t.Helper(); require.NoError(t, double.Restart(0)) }
	s.Compact = func(testing.TB) { double.Compact() }
	return s
}

// Connect returns the server of the current context of a kubeconfig.
func Connect(t testing.TB, path string) *Server {
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
	s := &Server{url: cluster.Server}
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
	s.transport = &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
	s.client = &http.Client{Transport: s.transport}
	t.Cleanup(s.transport.CloseIdleConnections)
	return s
}

// open sends a request and returns the response with an open body. writer "" means difftest.
func (s *Server) open(t testing.TB, method, path, writer, contentType, accept, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", orElse(accept, jsonType))
	req.Header.Set("User-Agent", orElse(writer, "difftest"))
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	return s.client.Do(req)
}

func (s *Server) do(t testing.TB, method, path, writer, contentType, accept, body string) Response {
	t.Helper()
	for {
		response, err := s.try(t, method, path, writer, contentType, accept, body)
		require.NoError(t, err, "%s %s", method, path)
		// A real server's cache starts with the first request of a resource, and may restart.
		if response.Status != http.StatusTooManyRequests || !strings.Contains(response.Body, "storage is (re)initializing") {
			return response
		}
	}
}

// try sends a request and returns its response or a connection error.
func (s *Server) try(t testing.TB, method, path, writer, contentType, accept, body string) (Response, error) {
	t.Helper()
	response, err := s.open(t, method, path, writer, contentType, accept, body)
	if err != nil {
		return Response{}, err
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, response.Body); err != nil {
		return Response{}, err
	}
	return Response{
		Status: response.StatusCode, Body: text.String(),
		ContentType: response.Header.Get("Content-Type"), Warnings: response.Header.Values("Warning"),
	}, nil
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define creates a definition. An existing definition, of an earlier run, is the same.
func (s *Server) define(t testing.TB, definition string) {
	t.Helper()
	response := s.do(t, http.MethodPost, definitionsPath, "", jsonType, "", definition)
	require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, response.Status, response.Body)
}

// awaitServed waits until the kinds are served. A real server needs some time after its start or the creation of a definition.
func (s *Server) awaitServed(t testing.TB, kinds []*kind, namespace string) {
	t.Helper()
	for _, k := range kinds {
		for _, version := range append([]string{k.version}, k.versions...) {
			path := strings.ReplaceAll(k.collection(version), "${ns}", namespace) + "?labelSelector=difftest%3Dabsent"
			require.Eventually(t, func() bool {
				response, err := s.try(t, http.MethodGet, path, "", "", "", "")
				return err == nil && response.Status == http.StatusOK
			}, 2*time.Minute, 20*time.Millisecond, path)
			s.awaitCache(t, strings.TrimSuffix(path, "?labelSelector=difftest%3Dabsent"))
		}
	}
}

// awaitCache waits until the server's cache of a collection is initialized. From then on it can be watched from any later
// resourceVersion. The request is a watch with initial events, which only the cache serves.
func (s *Server) awaitCache(t testing.TB, path string) {
	t.Helper()
	query := "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	require.Eventually(t, func() bool {
		response, err := s.open(t, http.MethodGet, path+query, "", "", "", "")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		lines := bufio.NewReader(response.Body)
		for response.StatusCode == http.StatusOK {
			line, err := lines.ReadString('\n')
			if err != nil || strings.Contains(line, "initial-events-end") {
				return err == nil
			}
		}
		return false
	}, 2*time.Minute, 20*time.Millisecond, path)
}
