package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/internal/credential"
	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestPool_PingsWithin45Seconds(t *testing.T) {
	pools, err := newPool(&Config{})
	require.NoError(t, err)
	pings := pools.current.HTTP2
	assert.Equal(t, 45*time.Second, pings.SendPingTimeout+pings.PingTimeout)
}

// TestPool_FrozenConnectionEndsRequests freezes the way to the server: packets vanish, and nothing is closed.
func TestPool_FrozenConnectionEndsRequests(t *testing.T) {
	frozen := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	defer server.CloseClientConnections()
	conn, err := Open(&Config{Server: "https://" + freezable(t, server.Listener.Addr().String(), frozen), Insecure: true})
	require.NoError(t, err)
	defer conn.Close()
	poolOf(conn).current.HTTP2 = &http.HTTP2Config{SendPingTimeout: 500 * time.Millisecond, PingTimeout: 500 * time.Millisecond}

	response, err := conn.Do(t.Context(), &Request{Path: "/api/v1/pods?watch=true"})
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, "HTTP/2.0", response.Proto)
	close(frozen)
	_, err = io.ReadAll(response.Body)
	require.ErrorContains(t, err, "connection lost")
}

// freezable forwards connections to address until frozen is closed, and then swallows what comes.
func freezable(t *testing.T, address string, frozen <-chan struct{}) (way string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", address)
		if err != nil {
			_ = near.Close()
			return
		}
		t.Cleanup(func() {
			_ = near.Close()
			_ = far.Close()
		})
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				buffer := make([]byte, 32<<10)
				for {
					n, err := pair[0].Read(buffer)
					if err != nil {
						return
					}
					select {
					case <-frozen:
					default:
						_, _ = pair[1].Write(buffer[:n])
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// newCertificate returns a certificate and its key as text.
func newCertificate(t *testing.T, name string, expires time.Time) (certificate, key string) {
	t.Helper()
	certificatePEM, keyPEM := credentials.NewCertificate(t, name, expires)
	return string(certificatePEM), string(keyPEM)
}

// get makes a request and returns the response's body.
func get(t *testing.T, conn *Conn) string {
	t.Helper()
	response, err := conn.Do(t.Context(), &Request{Path: "/"})
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// serveCommonName responds with the name in the client's certificate, to a request for /wait after leave is closed.
func serveCommonName(leave <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/wait" {
			<-leave
		}
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}
}

func TestPool_ReplacesClientCertificate(t *testing.T) {
	leave := make(chan struct{})
	server := httptest.NewUnstartedServer(serveCommonName(leave))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	tomorrow := time.Now().Add(24 * time.Hour)
	renew := func(name string) {
		certificate, key := newCertificate(t, name, tomorrow)
		write(t, filepath.Join(dir, "crt"), certificate)
		write(t, filepath.Join(dir, "key"), key)
	}
	renew("first")
	conn, err := Open(&Config{Server: server.URL, Insecure: true, CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")})
	require.NoError(t, err)
	defer conn.Close()
	clock := later(conn)

	assert.Equal(t, "first", get(t, conn))
	waiting, err := conn.Do(t.Context(), &Request{Path: "/wait"})
	require.NoError(t, err)
	defer waiting.Body.Close()
	renew("second")
	assert.Equal(t, "first", get(t, conn))
	*clock = time.Now().Add(2 * time.Minute)
	assert.Equal(t, "second", get(t, conn))
	close(leave)
	body, err := io.ReadAll(waiting.Body)
	require.NoError(t, err)
	assert.Equal(t, "first", string(body))

	// Only one of the two files is there yet.
	third, _ := newCertificate(t, "third", tomorrow)
	write(t, filepath.Join(dir, "crt"), third)
	*clock = time.Now().Add(4 * time.Minute)
	assert.Equal(t, "second", get(t, conn))
}

func poolOf(conn *Conn) *pool { return conn.http.Transport.(*pool) }

// later makes a connection's clock the caller's.
func later(conn *Conn) *time.Time {
	clock := time.Now()
	now := func() time.Time { return clock }
	poolOf(conn).now = now
	if static, ok := conn.authenticator.(*credential.Static); ok {
		static.Now = now
	}
	return &clock
}

func TestPool_ReplacesCertificateAuthority(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour)
	serving, servingKey := newCertificate(t, "server", tomorrow)
	pair, err := tls.X509KeyPair([]byte(serving), []byte(servingKey))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	other, _ := newCertificate(t, "other", tomorrow)
	path := write(t, filepath.Join(t.TempDir(), "ca.crt"), other)
	conn, err := Open(&Config{Server: server.URL, CAFile: path})
	require.NoError(t, err)
	defer conn.Close()
	clock := later(conn)

	_, err = conn.Do(t.Context(), &Request{Path: "/"})
	require.ErrorAs(t, err, &x509.UnknownAuthorityError{})
	write(t, path, "being written")
	*clock = clock.Add(2 * time.Minute)
	_, err = conn.Do(t.Context(), &Request{Path: "/"})
	require.ErrorAs(t, err, &x509.UnknownAuthorityError{}, "what is no certificate does not count")
	write(t, path, serving)
	*clock = clock.Add(2 * time.Minute)
	assert.Equal(t, "ok", get(t, conn))
}

func TestConn_DoReadsTokenFileAfter401(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "token"), "old")
	var tokens []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tokens = append(tokens, r.Header.Get("Authorization")+" "+string(body))
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	conn, err := Open(&Config{Server: server.URL, TokenFile: path})
	require.NoError(t, err)
	defer conn.Close()
	post := func() error {
		response, err := conn.Do(t.Context(), &Request{Method: http.MethodPost, Path: "/", Body: []byte("body")})
		if err != nil {
			return err
		}
		return response.Body.Close()
	}

	require.Error(t, post())
	assert.Equal(t, []string{"Bearer old body"}, tokens, "the file holds the same token: there is no other to try")
	write(t, path, "new")
	tokens = nil
	require.NoError(t, post())
	assert.Equal(t, []string{"Bearer old body", "Bearer new body"}, tokens)
}

func TestConn_DoReportsExpiredCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	expired := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	certificate, key := newCertificate(t, "ann", expired)
	conn, err := Open(&Config{Server: server.URL, Insecure: true, CertData: []byte(certificate), KeyData: kubeconfig.NewSecret(key)})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Do(t.Context(), &Request{Path: "/"})
	require.ErrorContains(t, err, "the client certificate expired at 2020-02-03T04:05:06Z")
}

// TestConn_CloseAfterCanceledWatch cancels a stream and closes at once, many times: the stream's
// end reaches the connection a moment later.
func TestConn_CloseAfterCanceledWatch(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for range 50 {
		conn, err := Open(&Config{Server: server.URL, Insecure: true})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		response, err := conn.Do(ctx, &Request{Path: "/watch"})
		require.NoError(t, err)
		cancel()
		_ = response.Body.Close()
		conn.Close()
		require.Eventually(t, func() bool { return poolOf(conn).open.Load() == 0 }, time.Minute, time.Millisecond)
	}
}

// TestConn_CloseWhileDialing closes while a request dials, and cancels the request: net/http dials the connection nevertheless.
func TestConn_CloseWhileDialing(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	conn, err := Open(&Config{Server: server.URL, Insecure: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	dials := make(chan struct{})
	ended := make(chan struct{})
	dialed := make(chan struct{})
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(string, string) {
			close(dials)
			<-ended
		},
		ConnectDone: func(string, string, error) { close(dialed) },
	})
	go func() {
		<-dials
		conn.Close()
		cancel()
	}()
	_, err = conn.Do(traced, &Request{Path: "/"})
	require.ErrorIs(t, err, context.Canceled)
	close(ended)
	<-dialed
	require.Eventually(t, func() bool { return poolOf(conn).open.Load() == 0 }, time.Minute, time.Millisecond)
}
