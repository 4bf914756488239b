package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dialer opens a stream as a WebSocket dialer does, up to the server's answer.
type dialer struct {
	ctx  context.Context
	conn net.Conn
}

func (d *dialer) dial(h *transport.Handshake) (*http.Response, error) {
	dial := h.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(d.ctx, "tcp", h.URL.Host)
	if err != nil {
		return nil, err
	}
	if h.URL.Scheme == "wss" {
		settings := h.TLS.Clone()
		if settings.ServerName == "" {
			settings.ServerName = h.URL.Hostname()
		}
		conn = tls.Client(conn, settings)
	}
	d.conn = conn
	target := *h.URL
	target.Scheme = "http"
	request := (&http.Request{Method: http.MethodGet, URL: &target, Host: target.Host, Header: h.Header.Clone()}).WithContext(d.ctx)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
	} {
		request.Header.Set(name, value)
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New("bad handshake")
	}
	return response, err
}

func (d *dialer) close() {
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

func TestAStreamIsOpenedWithTheSettingsOfTheConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "HTTP/1.1", r.Proto)
		assert.Equal(t, "/prefix/exec?command=ls", r.RequestURI)
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"))
		assert.Equal(t, "bob", r.Header.Get("Impersonate-User"))
		assert.Regexp(t, "^anykind/", r.Header.Get("User-Agent"))
		assert.Equal(t, "yes", r.Header.Get("X-Own"))
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var seen []transport.Attempt
	conn, err := transport.Open(&transport.Config{
		Server: server.URL + "/prefix", Insecure: true, Token: "s3cret", Impersonate: transport.Impersonation{User: "bob"},
		Options: transport.Options{Observe: func(_ context.Context, a transport.Attempt) { seen = append(seen, a) }},
	})
	require.NoError(t, err)
	defer conn.Close()
	stream := dialer{ctx: t.Context()}
	defer stream.close()
	require.NoError(t, conn.Upgrade(t.Context(), &transport.Request{Path: "/exec?command=ls", Header: http.Header{"X-Own": {"yes"}}}, stream.dial))
	require.Len(t, seen, 1)
	assert.Equal(t, 101, seen[0].Code)
}

func TestAStreamThatIsRefusedIsAStatusErrorAndOneThatBreaksNamesItsURL(t *testing.T) {
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not you","code":403}`)
	})
	stream := dialer{ctx: t.Context()}
	defer stream.close()
	err := conn.Upgrade(t.Context(), &transport.Request{Path: "/exec"}, stream.dial)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "not you")

	err = conn.Upgrade(t.Context(), &transport.Request{Path: "/exec?command=s3cret"}, func(*transport.Handshake) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "/prefix/exec: open a stream")
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestAProgramsOwnClientLendsItsSettingsToStreams(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	defer server.Close()
	conn, err := transport.New(server.URL, server.Client(), nil)
	require.NoError(t, err)
	stream := dialer{ctx: t.Context()}
	defer stream.close()
	require.NoError(t, conn.Upgrade(t.Context(), &transport.Request{Path: "/exec"}, stream.dial))

	opaque := &http.Client{Transport: seeing{server.Client().Transport, func(*http.Request) {}}}
	conn, err = transport.New(server.URL, opaque, nil)
	require.NoError(t, err)
	err = conn.Upgrade(t.Context(), &transport.Request{Path: "/exec"}, stream.dial)
	require.ErrorContains(t, err, "WrappedRoundTripper")
}

func TestARealServerAnswersAStreamsHandshake(t *testing.T) {
	for _, context := range []string{"admin", "token"} {
		conn, err := transport.Open(sandbox(t, context))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		stream := dialer{ctx: t.Context()}
		t.Cleanup(stream.close)
		err = conn.Upgrade(t.Context(), &transport.Request{Path: "/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true"}, stream.dial)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, `pods "none" not found`)
	}
	conn, err := transport.Open(sandbox(t, "limited"))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	stream := dialer{ctx: t.Context()}
	t.Cleanup(stream.close)
	err = conn.Upgrade(t.Context(), &transport.Request{Path: "/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true"}, stream.dial)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestAStreamGoesThroughTheUsersKubectl(t *testing.T) {
	cluster.KubectlOnPath(t)
	conn, err := transport.Kubectl(t.Context(), &transport.KubectlOptions{Args: []string{"--kubeconfig", cluster.Kubeconfig(t)}})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	stream := dialer{ctx: t.Context()}
	t.Cleanup(stream.close)
	err = conn.Upgrade(t.Context(), &transport.Request{Path: "/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true"}, stream.dial)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
