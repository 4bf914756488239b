package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

const unauthorizedStatus = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`

// countingPlugin returns a plugin that prints another token each time, and how often it has run.
func countingPlugin(t *testing.T) (plugin *transport.ExecPlugin, runs func() int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a shell script")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "login")
	log := filepath.Join(dir, "runs")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `#!/bin/sh
echo run >>%[1]s
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"token-%%d"}}' $(wc -l <%[1]s)
`, log), 0o700))
	return &transport.ExecPlugin{Exec: kubeconfig.Exec{APIVersion: kubeconfig.ExecV1, Command: path, InteractiveMode: "Never"}}, func() int {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return strings.Count(string(text), "run")
	}
}

// TestConn_RenewsOnlyIfAPIServerRejects has programs behind the API server that respond as it does.
func TestConn_RenewsOnlyIfAPIServerRejects(t *testing.T) {
	for _, path := range []string{
		"/api/v1/namespaces/x/pods/evil/proxy/", "/api/v1/namespaces/x/services/https:evil:443/proxy/a/b", "/api/v1/nodes/evil/proxy",
		"/api/v1/namespaces/x/pods/evil/log", "/api/v1/namespaces/x/pods/evil/exec",
	} {
		t.Run(path, func(t *testing.T) {
			plugin, runs := countingPlugin(t)
			var checks atomic.Int32
			valid := atomic.Pointer[string]{}
			valid.Store(new("Bearer token-1"))
			server := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/version") && r.Header.Get("Authorization") == *valid.Load() {
					checks.Add(1)
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, unauthorizedStatus)
			}
			conn := serveConfig(t, server, &transport.Config{Exec: plugin})
			ask := func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, conn.Server()+path, nil)
				require.NoError(t, err)
				response, err := conn.RoundTrip(request)
				require.NoError(t, err)
				text, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				assert.Equal(t, unauthorizedStatus, string(text))
				_, err = conn.Do(t.Context(), &transport.Request{Path: path})
				require.Error(t, err)
				_, _, err = conn.Upgrade(t.Context(), upgradeRequest(path))
				require.Error(t, err)
			}
			for range 5 {
				ask()
			}
			assert.Equal(t, 1, runs(), "the API server accepts the credential")
			assert.EqualValues(t, 1, checks.Load(), "it is asked once")
		})
	}
}

func TestConn_RenewsForAPIServerBehindForwardedPath(t *testing.T) {
	plugin, runs := countingPlugin(t)
	conn := serveConfig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer token-1" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, unauthorizedStatus)
		}
	}, &transport.Config{Exec: plugin})
	require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/namespaces/x/pods/web/proxy/"}))
	assert.Equal(t, 2, runs())
}

// TestConn_RenewsAtIntervals has a server that refuses every credential.
func TestConn_RenewsAtIntervals(t *testing.T) {
	plugin, runs := countingPlugin(t)
	conn := serveConfig(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		&transport.Config{Exec: plugin})
	for range 20 {
		require.Error(t, do(t, conn, &transport.Request{Path: "/apis/example.com/v1/widgets"}))
	}
	assert.Less(t, runs(), 5)
}

// TestConn_RenewsForEachExpiry has a server whose tokens end after each request, one after the other.
func TestConn_RenewsForEachExpiry(t *testing.T) {
	plugin, runs := countingPlugin(t)
	var number atomic.Int32
	conn := serveConfig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", number.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}, &transport.Config{Exec: plugin})
	for range 6 {
		number.Add(1)
		require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/pods"}))
	}
	assert.Equal(t, 6, runs())
}

// TestConn_RenewsOnceForAggregatedAPI has an API server that accepts every credential, and an aggregated one that accepts
// none.
func TestConn_RenewsOnceForAggregatedAPI(t *testing.T) {
	plugin, runs := countingPlugin(t)
	conn := serveConfig(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/apis/example.com/") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}, &transport.Config{Exec: plugin})
	for range 10 {
		require.Error(t, do(t, conn, &transport.Request{Path: "/apis/example.com/v1/widgets"}))
		require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/pods"}))
	}
	assert.Equal(t, 2, runs())
}

// TestConn_CheckOfCredentialObservesEveryContext has an API server that never responds to the check.
func TestConn_CheckOfCredentialObservesEveryContext(t *testing.T) {
	const path = "/api/v1/namespaces/x/pods/evil/proxy/"
	for name, send := range map[string]func(context.Context, *transport.Conn) error{
		"Do": func(ctx context.Context, conn *transport.Conn) error {
			_, err := conn.Do(ctx, &transport.Request{Path: path})
			return err
		},
		"Upgrade": func(ctx context.Context, conn *transport.Conn) error {
			_, _, err := conn.Upgrade(ctx, upgradeRequest(path))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hanging := roundTripper(func(req *http.Request) (*http.Response, error) {
					if req.URL.Path == "/version" {
						<-req.Context().Done()
						return nil, req.Context().Err()
					}
					return newResponse(req, http.StatusUnauthorized, unauthorizedStatus, "Content-Type", "application/json"), nil
				})
				cfg := &transport.Config{Server: "http://server", Token: kubeconfig.NewSecret("t")}
				cfg.WrapTransport = func(http.RoundTripper) http.RoundTripper { return hanging }
				conn, err := transport.Open(cfg)
				require.NoError(t, err)
				checking, stop := context.WithCancel(t.Context())
				first := make(chan error, 1)
				go func() { first <- send(checking, conn) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err = send(ctx, conn)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
				stop()
				err = <-first
				require.ErrorIs(t, err, context.Canceled)
				assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
			})
		})
	}
}

// serveConfig opens a connection to a scripted server with a config.
func serveConfig(t *testing.T, handler http.HandlerFunc, cfg *transport.Config) *transport.Conn {
	t.Helper()
	server := httptest.NewServer(handler)
	cfg.Server = server.URL + "/prefix"
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return conn
}
