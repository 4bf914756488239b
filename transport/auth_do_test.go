package transport

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/internal/execplugin"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// serveClients starts an HTTP/2 server that requests a client certificate.
func serveClients(t *testing.T, handler http.HandlerFunc) *Config {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return &Config{Server: server.URL, CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

func peerName(r *http.Request) string {
	if len(r.TLS.PeerCertificates) == 0 {
		return "nobody"
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

// PluginOf returns the configuration that runs a plugin.
func PluginOf(fake *credentials.Plugin) *ExecPlugin {
	plugin := &ExecPlugin{Exec: kubeconfig.Exec{APIVersion: kubeconfig.ExecV1, Command: fake.Command}}
	for name, value := range fake.Env {
		plugin.Env = append(plugin.Env, kubeconfig.EnvVar{Name: name, Value: kubeconfig.NewSecret(value)})
	}
	return plugin
}

// oidcOf returns an issuer's user, whose ID token is missing.
func oidcOf(issuer *credentials.Issuer) *OIDC {
	return &OIDC{
		Issuer: issuer.IssuerURL(), ClientID: credentials.ClientID, ClientSecret: kubeconfig.NewSecret(credentials.ClientSecret),
		RefreshToken: kubeconfig.NewSecret(credentials.RefreshToken), CAData: issuer.CAData(),
	}
}

func open(t *testing.T, cfg *Config) *Conn {
	t.Helper()
	conn, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func bodyOf(t *testing.T, conn *Conn, req *Request) string {
	t.Helper()
	response, err := conn.Do(t.Context(), req)
	require.NoError(t, err)
	return rest(t, response)
}

func rest(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// redirected sends requests to another host, as a round tripper of a caller may.
type redirected struct {
	next http.RoundTripper
	host string
}

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.host
	return r.next.RoundTrip(req)
}

func TestConn_DoPresentsCredentialToItsServerOnly(t *testing.T) {
	respond := func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, peerName(r), r.Header.Get("Authorization"), r.Header.Get("Impersonate-User"))
	}
	cfg := serveClients(t, respond)
	other := serveClients(t, respond)
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	cfg.CertData = certificate
	cfg.KeyData = kubeconfig.NewSecret(string(key))
	cfg.Impersonate.User = "eve"
	assert.Equal(t, "anneve", bodyOf(t, open(t, cfg), &Request{Path: "/"}))
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return redirected{next, strings.TrimPrefix(other.Server, "https://")}
	}
	assert.Equal(t, "nobody", bodyOf(t, open(t, cfg), &Request{Path: "/"}))
}

func TestOpen_CopiesCertificates(t *testing.T) {
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, peerName(r)) })
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	cfg.CertData = certificate
	cfg.KeyData = kubeconfig.NewSecret(string(key))
	conn := open(t, cfg)
	clear(cfg.CertData)
	clear(cfg.CAData)
	assert.Equal(t, "ann", bodyOf(t, conn, &Request{Path: "/"}))
}

func TestConn_DoRotatesCertificateOfPlugin(t *testing.T) {
	release := make(chan struct{})
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, peerName(r))
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-release:
				_, _ = fmt.Fprint(w, " to the end")
			case <-r.Context().Done():
			}
		}
	})
	c := credentials.NewClock()
	annPEM, annKey := credentials.NewCertificate(t, "ann", c.Now().Add(time.Hour))
	bobPEM, bobKey := credentials.NewCertificate(t, "bob", c.Now().Add(3*time.Hour))
	fake := credentials.NewPlugin(t)
	fake.Serve(t, credentials.PluginAction{Stdout: credentials.CertificateOutput(annPEM, annKey)}, credentials.PluginAction{Stdout: credentials.CertificateOutput(bobPEM, bobKey)})
	cfg.Exec = PluginOf(fake)
	conn := open(t, cfg)
	conn.authenticator.(*execplugin.Authenticator).Now = c.Now

	watch, err := conn.Do(t.Context(), &Request{Path: "/watch"})
	require.NoError(t, err)
	assert.Equal(t, "ann", bodyOf(t, conn, &Request{Path: "/"}))
	assert.Equal(t, 1, fake.Runs())

	c.Advance(2 * time.Hour)
	assert.Equal(t, "bob", bodyOf(t, conn, &Request{Path: "/"}))
	assert.Equal(t, 2, fake.Runs())
	close(release)
	assert.Equal(t, "ann to the end", rest(t, watch))
}

func TestConn_DoRenewsAfter401WithPlugin(t *testing.T) {
	for name, dial := range map[string]Request{
		"GET":  {Path: "/"},
		"POST": {Method: http.MethodPost, Path: "/", Body: []byte("the body")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Header.Get("Authorization") != "Bearer new" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = fmt.Fprintf(w, "%s %q", r.Method, body)
			})
			fake := credentials.NewPlugin(t)
			fake.Serve(t, credentials.PluginAction{Stdout: credentials.TokenOutput("old")}, credentials.PluginAction{Stdout: credentials.TokenOutput("new")})
			cfg.Exec = PluginOf(fake)
			conn := open(t, cfg)
			for range 2 {
				assert.Equal(t, fmt.Sprintf("%s %q", name, dial.Body), bodyOf(t, conn, &dial))
			}
			assert.Equal(t, 2, fake.Runs())
		})
	}
}

func TestConn_DoReturnsRepeated401(t *testing.T) {
	var requests int
	cfg := serveClients(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusUnauthorized)
	})
	for name, tc := range map[string]struct {
		second         credentials.PluginAction
		requests, runs int
		want           string
	}{
		"another token":       {credentials.PluginAction{Stdout: credentials.TokenOutput(credentials.Planted + "2")}, 2, 2, "401"},
		"the same token":      {credentials.PluginAction{Stdout: credentials.TokenOutput(credentials.Planted)}, 1, 2, "401"},
		"a plugin that fails": {credentials.PluginAction{Stdout: credentials.Planted, Stderr: credentials.Planted, Exit: 1}, 1, 2, "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			requests = 0
			fake := credentials.NewPlugin(t)
			fake.Serve(t, credentials.PluginAction{Stdout: credentials.TokenOutput(credentials.Planted)}, tc.second)
			cfg.Exec = PluginOf(fake)
			_, err := open(t, cfg).Do(t.Context(), &Request{Path: "/"})
			var status *apierrors.StatusError
			require.ErrorAs(t, err, &status)
			assert.True(t, apierrors.IsUnauthorized(err))
			assert.ErrorContains(t, err, tc.want)
			assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), credentials.Planted)
			assert.Equal(t, tc.requests, requests)
			assert.Equal(t, tc.runs, fake.Runs())
		})
	}
}

func TestConn_DoSharesPluginRun(t *testing.T) {
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header.Get("Authorization")) })
	fake := credentials.NewPlugin(t)
	cfg.Exec = PluginOf(fake)
	conn := open(t, cfg)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			response, err := conn.Do(t.Context(), &Request{Path: "/"})
			if assert.NoError(t, err) {
				assert.Equal(t, "Bearer t", rest(t, response))
			}
		})
	}
	fake.Next(t).Do(t, credentials.PluginAction{Stdout: credentials.TokenOutput("t")})
	wait.Wait()
	assert.Equal(t, 1, fake.Runs())
}

func TestConn_DoReportsFailedPlugin(t *testing.T) {
	fake := credentials.NewPlugin(t)
	fake.Serve(t, credentials.PluginAction{Stdout: credentials.Planted, Stderr: credentials.Planted, Exit: 1})
	plugin := PluginOf(fake)
	plugin.Args = []string{credentials.Planted}
	_, err := open(t, &Config{Server: "https://127.0.0.1:1", Exec: plugin}).Do(t.Context(), &Request{Path: "/version"})
	require.ErrorContains(t, err, "GET https://127.0.0.1:1/version: exec plugin")
	assert.NotContains(t, err.Error(), credentials.Planted)
}

func TestConn_DoReportsFailedRefresh(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	issuer.Token = http.NotFound
	_, err := open(t, &Config{Server: "https://127.0.0.1:1", OIDC: oidcOf(issuer)}).Do(t.Context(), &Request{Path: "/version"})
	require.ErrorContains(t, err, "GET https://127.0.0.1:1/version: oidc: refresh the ID token: POST "+issuer.URL+"/token: the response is 404")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), credentials.Planted)
}

func TestConn_DoRefreshesIDTokenAfter401(t *testing.T) {
	expires := time.Now().Add(time.Hour)
	first := credentials.IDToken("1", expires)
	second := credentials.IDToken("2", expires)
	for name, tc := range map[string]struct {
		accepted string
		ok       bool
	}{"that one is accepted": {second, true}, "that one is refused": {"none", false}} {
		t.Run(name, func(t *testing.T) {
			issuer := credentials.NewIssuer(t)
			issuer.Respond(second, "")
			cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+tc.accepted {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			cfg.OIDC = oidcOf(issuer)
			cfg.OIDC.IDToken = kubeconfig.NewSecret(first)
			response, err := open(t, cfg).Do(t.Context(), &Request{Path: "/"})
			if tc.ok {
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
			} else {
				assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
				assert.NotContains(t, err.Error(), second)
			}
			assert.Len(t, issuer.Requests(), 1)
		})
	}
}

func TestConn_DoSharesRefresh(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	expires := time.Now().Add(time.Hour)
	issuer.Respond(credentials.IDToken("ann", expires), credentials.Planted+"-rotated")
	cfg := serveClients(t, func(http.ResponseWriter, *http.Request) {})
	cfg.OIDC = oidcOf(issuer)
	conn := open(t, cfg)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			response, err := conn.Do(t.Context(), &Request{Path: "/"})
			if assert.NoError(t, err) {
				assert.NoError(t, response.Body.Close())
			}
		})
	}
	wait.Wait()
	assert.Len(t, issuer.Requests(), 1)
}

func TestConn_DoSendsIDTokenWithCertificate(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	expires := time.Now().Add(time.Hour)
	first := credentials.IDToken("1", expires)
	second := credentials.IDToken("2", expires)
	issuer.Respond(second, "")
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+second {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, peerName(r))
	})
	certificate, key := credentials.NewCertificate(t, "ann", expires)
	cfg.CertData = certificate
	cfg.KeyData = kubeconfig.NewSecret(string(key))
	cfg.OIDC = oidcOf(issuer)
	cfg.OIDC.IDToken = kubeconfig.NewSecret(first)
	conn := open(t, cfg)
	assert.Equal(t, "ann", bodyOf(t, conn, &Request{Path: "/"}))
	one, err := conn.authenticator.Credential(t.Context())
	require.NoError(t, err)
	two, err := conn.authenticator.Credential(t.Context())
	require.NoError(t, err)
	assert.Same(t, one, two)
	assert.Len(t, issuer.Requests(), 1)
}
