package transport

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// serveClients gives an HTTP/2 server that asks for a client certificate.
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

func shownName(r *http.Request) string {
	if len(r.TLS.PeerCertificates) == 0 {
		return "nobody"
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

func openExec(t *testing.T, cfg *Config, c *clock) *Conn {
	t.Helper()
	conn, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	a := conn.who.(*execAuthenticator)
	a.now, a.stderr = c.now, io.Discard
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

func TestAPluginsCertificateIsShownAndRotatedWithoutEndingWhatIsUnderWay(t *testing.T) {
	release := make(chan struct{})
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, shownName(r))
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-release:
				_, _ = fmt.Fprint(w, " to the end")
			case <-r.Context().Done():
			}
		}
	})
	c := newClock()
	annPEM, annKey := pairUntil(t, "ann", c.now().Add(time.Hour))
	bobPEM, bobKey := pairUntil(t, "bob", c.now().Add(3*time.Hour))
	fake := NewFakePlugin(t)
	fake.Serve(t, Order{Stdout: ExecCertificate(annPEM, annKey)}, Order{Stdout: ExecCertificate(bobPEM, bobKey)})
	cfg.Exec = fake.Plugin(t)
	conn := openExec(t, cfg, c)

	watch, err := conn.Do(t.Context(), &Request{Path: "/watch"})
	require.NoError(t, err)
	assert.Equal(t, "ann", bodyOf(t, conn, &Request{Path: "/"}))
	assert.EqualValues(t, 1, fake.runs.Load())

	c.advance(2 * time.Hour)
	assert.Equal(t, "bob", bodyOf(t, conn, &Request{Path: "/"}))
	assert.EqualValues(t, 2, fake.runs.Load())
	close(release)
	assert.Equal(t, "ann to the end", rest(t, watch))
}

func TestAfterA401ThePluginRunsAgainAndTheRequestIsRepeatedWithItsBody(t *testing.T) {
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
			fake := NewFakePlugin(t)
			fake.Serve(t, Order{Stdout: ExecToken("old")}, Order{Stdout: ExecToken("new")})
			cfg.Exec = fake.Plugin(t)
			conn := openExec(t, cfg, newClock())
			for range 2 {
				assert.Equal(t, fmt.Sprintf("%s %q", name, dial.Body), bodyOf(t, conn, &dial))
			}
			assert.EqualValues(t, 2, fake.runs.Load())
		})
	}
}

func TestAServerThatRefusesEveryCredentialOfAPluginIsBelieved(t *testing.T) {
	var asked int
	cfg := serveClients(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusUnauthorized)
	})
	for name, tc := range map[string]struct {
		second      Order
		asked, runs int
		says        string
	}{
		"another token":       {Order{Stdout: ExecToken(planted + "2")}, 2, 2, "401"},
		"the same token":      {Order{Stdout: ExecToken(planted)}, 1, 2, "401"},
		"a plugin that fails": {Order{Stdout: planted, Stderr: planted, Exit: 1}, 1, 2, "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			fake := NewFakePlugin(t)
			fake.Serve(t, Order{Stdout: ExecToken(planted)}, tc.second)
			cfg.Exec = fake.Plugin(t)
			_, err := openExec(t, cfg, newClock()).Do(t.Context(), &Request{Path: "/"})
			var status *apierrors.StatusError
			require.ErrorAs(t, err, &status)
			assert.True(t, apierrors.IsUnauthorized(err))
			assert.ErrorContains(t, err, tc.says)
			assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), planted)
			assert.Equal(t, tc.asked, asked)
			assert.EqualValues(t, tc.runs, fake.runs.Load())
		})
	}
}

func TestRequestsAtTheSameTimeShareARunOfThePlugin(t *testing.T) {
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header.Get("Authorization")) })
	fake := NewFakePlugin(t)
	cfg.Exec = fake.Plugin(t)
	conn := openExec(t, cfg, newClock())
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			response, err := conn.Do(t.Context(), &Request{Path: "/"})
			if assert.NoError(t, err) {
				assert.Equal(t, "Bearer t", rest(t, response))
			}
		})
	}
	fake.Next(t).Do(t, Order{Stdout: ExecToken("t")})
	wait.Wait()
	assert.EqualValues(t, 1, fake.runs.Load())
}

func TestAFailingPluginFailsTheRequestAndTheErrorNamesBoth(t *testing.T) {
	fake := NewFakePlugin(t)
	fake.Serve(t, Order{Stdout: planted, Stderr: planted, Exit: 1})
	plugin := fake.Plugin(t)
	plugin.Args = []string{planted}
	_, err := openExec(t, &Config{Server: "https://127.0.0.1:1", Exec: plugin}, newClock()).Do(t.Context(), &Request{Path: "/version"})
	require.ErrorContains(t, err, "GET https://127.0.0.1:1/version: exec plugin")
	assert.NotContains(t, err.Error(), planted)
}
