package transport_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// sandbox is the sandbox's configuration as one of its contexts: admin, token or limited.
func sandbox(t *testing.T, context string) *transport.Config {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: context})
	require.NoError(t, err)
	return cfg
}

// whoami returns the user that the server authenticates.
func whoami(t *testing.T, cfg *transport.Config) (user string, groups []string, response *http.Response) {
	t.Helper()
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	response, err = conn.Do(t.Context(), &transport.Request{
		Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`),
	})
	require.NoError(t, err)
	defer response.Body.Close()
	var review struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&review))
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups, response
}

func TestOpen_CredentialsOnRealServer(t *testing.T) {
	tokenFile := sandbox(t, "token")
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(tokenFile.Token.Reveal()+"\n"), 0o600))
	tokenFile.Token = kubeconfig.Secret{}
	tokenFile.TokenFile = path
	impersonating := sandbox(t, "admin")
	impersonating.Impersonate = transport.Impersonation{User: "jane", Groups: []string{"shop"}}

	for name, tc := range map[string]struct {
		cfg  *transport.Config
		user string
	}{
		"certificate":   {sandbox(t, "admin"), "admin"},
		"token":         {sandbox(t, "token"), "token-admin"},
		"token file":    {tokenFile, "token-admin"},
		"impersonation": {impersonating, "jane"},
	} {
		t.Run(name, func(t *testing.T) {
			user, groups, response := whoami(t, tc.cfg)
			assert.Equal(t, tc.user, user)
			assert.Contains(t, groups, "system:authenticated")
			assert.Equal(t, "HTTP/2.0", response.Proto)
		})
	}
}

func TestConn_DoStatusErrorsOfRealServer(t *testing.T) {
	stranger := sandbox(t, "token")
	stranger.Token = kubeconfig.NewSecret("nobody's")
	for name, tc := range map[string]struct {
		cfg  *transport.Config
		path string
		is   func(error) bool
	}{
		"not found":    {sandbox(t, "admin"), "/api/v1/nodes/none", apierrors.IsNotFound},
		"no such path": {sandbox(t, "admin"), "/apis/none/v1", apierrors.IsNotFound},
		"forbidden":    {sandbox(t, "limited"), "/api/v1/secrets", apierrors.IsForbidden},
		"unauthorized": {stranger, "/api/v1/secrets", apierrors.IsUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := transport.Open(tc.cfg)
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			_, err = conn.Do(t.Context(), &transport.Request{Path: tc.path})
			require.True(t, tc.is(err), "%v", err)
			var status *apierrors.StatusError
			require.ErrorAs(t, err, &status)
			assert.NotContains(t, err.Error(), "nobody's")
		})
	}
}

func TestConn_DoRejectsUntrustedServer(t *testing.T) {
	cfg := sandbox(t, "token")
	_, other := serveTLS(t)
	cfg.CAData = other
	cfg.CAFile = ""
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/version"})
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown)
	require.ErrorContains(t, err, "/version")
}

func TestConn_DoAfterServerRestart(t *testing.T) {
	conn, err := transport.Open(sandbox(t, "admin"))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	ask := func() {
		response, err := conn.Do(t.Context(), &transport.Request{Path: "/version"})
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	ask()
	for _, kill := range []bool{false, true} {
		cluster.RestartAPIServer(t, kill)
		ask()
	}
}

func TestNew_OwnHTTPClient(t *testing.T) {
	cfg := sandbox(t, "admin")
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cfg.CAData))
	certificate, err := tls.X509KeyPair(cfg.CertData, []byte(cfg.KeyData.Reveal()))
	require.NoError(t, err)
	own := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{certificate},
	}}}
	conn, err := transport.New(cfg.Server, own, nil)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/api/v1/namespaces/default"})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}

func TestExecPlugin_CredentialsOnRealServer(t *testing.T) {
	admin := sandbox(t, "admin")
	token := sandbox(t, "token")
	for name, tc := range map[string]struct{ output, user string }{
		"a token":       {credentials.TokenOutput(token.Token.Reveal()), "token-admin"},
		"a certificate": {credentials.CertificateOutput(admin.CertData, []byte(admin.KeyData.Reveal())), "admin"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := credentials.NewPlugin(t)
			fake.Serve(t, credentials.PluginAction{Stdout: tc.output})
			user, groups, response := whoami(t, &transport.Config{Server: admin.Server, CAData: admin.CAData, CAFile: admin.CAFile, Exec: transport.PluginOf(fake)})
			assert.Equal(t, tc.user, user)
			assert.Contains(t, groups, "system:authenticated")
			assert.Equal(t, "HTTP/2.0", response.Proto)
		})
	}
}

func TestExecPlugin_RunsAgainAfterRealServers401(t *testing.T) {
	token := sandbox(t, "token")
	fake := credentials.NewPlugin(t)
	fake.Serve(t, credentials.PluginAction{Stdout: credentials.TokenOutput("nobody's")}, credentials.PluginAction{Stdout: credentials.TokenOutput(token.Token.Reveal())})
	user, _, _ := whoami(t, &transport.Config{Server: token.Server, CAData: token.CAData, CAFile: token.CAFile, Exec: transport.PluginOf(fake)})
	assert.Equal(t, "token-admin", user)
}
