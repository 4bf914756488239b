package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
			Observe: func(_ context.Context, a transport.Attempt) { resource = a.Resource },
		}})
		require.NoError(t, err, path)
		require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/pods"}))
		assert.Equal(t, want, uri)
		assert.Equal(t, "pods", resource, path)
		conn.Close()
	}
}

func TestConfig_HidesPasswordInURL(t *testing.T) {
	for _, server := range []string{
		"https://admin:hun?ter2@host:6443", "https://admin:hun#ter2@host", "https://admin:hun/ter2@host", "https://admin:hunter2@host:6443/%zz",
		"https://admin:7777?hunter2@host", "admin:hunter2@host", "https://admin:hun?t@er2@host", "https://host?token=hunter2", "https://host#hunter2",
	} {
		cfg := transport.Config{Server: server, ProxyURL: server}
		var shown bytes.Buffer
		_, err := transport.Open(&cfg)
		require.Error(t, err)
		_, issuer := transport.Open(&transport.Config{Server: "https://host", OIDC: &transport.OIDC{Issuer: server, ClientID: "c", RefreshToken: transport.NewSecret("r")}})
		require.Error(t, issuer)
		_, proxy := transport.Open(&transport.Config{Server: "https://host", ProxyURL: server})
		_, _ = fmt.Fprintln(&shown, err, issuer, proxy, cfg, &cfg)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("opening", "config", cfg)
		for _, secret := range []string{"hun", "ter2", "7777", "er2"} {
			assert.NotContains(t, shown.String(), secret, server)
		}
	}
}
