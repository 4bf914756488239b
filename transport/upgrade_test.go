package transport_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// upgradeRequest requests a WebSocket as a stream does.
func upgradeRequest(path string) *transport.Request {
	return &transport.Request{Path: path, Header: http.Header{
		"Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
		"Sec-Websocket-Protocol": {"v5.channel.k8s.io"}, "X-Own": {"yes"},
	}}
}

// switching checks a request and then switches to a protocol in which the server greets and echoes.
func switching(check func(*http.Request)) http.HandlerFunc {
	echo := memconn.SwitchProtocols("Connection: Upgrade\r\nUpgrade: websocket\r\nX-Chosen: v5\r\n", "hello\n")
	return func(w http.ResponseWriter, r *http.Request) {
		check(r)
		echo(w, r)
	}
}

// checkEcho has a conversation on an upgraded connection and ends it.
func checkEcho(t *testing.T, conn net.Conn) {
	t.Helper()
	lines := bufio.NewReader(conn)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
	_, err = io.WriteString(conn, "ping\n")
	require.NoError(t, err)
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "ping\n", line)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.NotNil(t, conn.RemoteAddr())
	require.NoError(t, conn.Close())
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestConn_UpgradeSwitchesProtocols(t *testing.T) {
	server := httptest.NewUnstartedServer(switching(func(r *http.Request) {
		assert.Equal(t, "HTTP/1.1", r.Proto)
		assert.Equal(t, "/prefix/exec?command=ls", r.RequestURI)
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"))
		assert.Equal(t, "bob", r.Header.Get("Impersonate-User"))
		assert.Regexp(t, "^anykind/", r.Header.Get("User-Agent"))
		assert.Equal(t, "yes", r.Header.Get("X-Own"))
		assert.Equal(t, "Upgrade", r.Header.Get("Connection"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var seen []transport.Attempt
	conn, err := transport.Open(&transport.Config{
		Server: server.URL + "/prefix", Insecure: true, Token: kubeconfig.NewSecret("s3cret"), Impersonate: transport.Impersonation{User: "bob"},
		Options: transport.Options{OnAttempt: func(_ context.Context, a transport.Attempt) { seen = append(seen, a) }},
	})
	require.NoError(t, err)
	defer conn.Close()
	stream, header, err := conn.Upgrade(t.Context(), upgradeRequest("/exec?command=ls"))
	require.NoError(t, err)
	assert.Equal(t, "v5", header.Get("X-Chosen"))
	checkEcho(t, stream)
	require.Len(t, seen, 1)
	assert.Equal(t, 101, seen[0].StatusCode)
}

// TestConn_UpgradeToOtherProtocol upgrades to SPDY on a server that prefers HTTP/2, twice, and after a rejection.
func TestConn_UpgradeToOtherProtocol(t *testing.T) {
	accept := switching(func(r *http.Request) {
		assert.Equal(t, "HTTP/1.1", r.Proto)
		assert.Equal(t, "SPDY/3.1", r.Header.Get("Upgrade"))
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"))
	})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/plain":
			assert.Equal(t, "HTTP/2.0", r.Proto)
		case "/rejected":
			http.Error(w, "no", http.StatusForbidden)
		default:
			accept(w, r)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, Insecure: true, Token: kubeconfig.NewSecret("s3cret")})
	require.NoError(t, err)
	defer conn.Close()
	for range 2 {
		response, err := conn.Do(t.Context(), &transport.Request{Path: "/plain"})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		request := &transport.Request{Method: http.MethodPost, Path: "/rejected", Header: http.Header{"Upgrade": {"SPDY/3.1"}}}
		_, _, err = conn.Upgrade(t.Context(), request)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		request.Path = "/exec"
		stream, _, err := conn.Upgrade(t.Context(), request)
		require.NoError(t, err)
		checkEcho(t, stream)
	}
}

func TestConn_UpgradeUsesRoundTrippers(t *testing.T) {
	server := httptest.NewTLSServer(switching(func(r *http.Request) {
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"), "the round tripper's own credential")
	}))
	defer server.Close()
	for name, connect := range map[string]func() (*transport.Conn, error){
		"the HTTP client's": func() (*transport.Conn, error) {
			return transport.New(server.URL, &http.Client{Transport: bearing(server.Client().Transport), Timeout: time.Minute}, nil)
		},
		"Options.Wrap": func() (*transport.Conn, error) {
			return transport.New(server.URL, server.Client(), &transport.Options{WrapTransport: bearing})
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := connect()
			require.NoError(t, err)
			defer conn.Close()
			stream, _, err := conn.Upgrade(t.Context(), upgradeRequest("/exec"))
			require.NoError(t, err)
			checkEcho(t, stream)
		})
	}
}

// bearing wraps a round tripper as client-go's do: it adds a credential, and does not show what it wraps.
func bearing(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer s3cret")
		return next.RoundTrip(req)
	})
}

func TestConn_UpgradeThroughUnsuitableRoundTrippers(t *testing.T) {
	server := httptest.NewServer(switching(func(*http.Request) {}))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for name, c := range map[string]struct {
		wrap roundTripper
		want string
	}{
		"the body is replaced": {func(req *http.Request) (*http.Response, error) {
			response, err := http.DefaultTransport.RoundTrip(req)
			if err == nil {
				response.Body = struct{ io.ReadCloser }{response.Body}
			}
			return response, err
		}, "replaces the body of the response 101"},
		"the context is replaced": {func(req *http.Request) (*http.Response, error) {
			return http.DefaultTransport.RoundTrip(req.WithContext(t.Context()))
		}, "does not report its connection"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := transport.New(server.URL, &http.Client{Transport: c.wrap}, nil)
			require.NoError(t, err)
			_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/exec"))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConn_UpgradeReturnsRejections(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		body  string
		check func(error) bool
	}{
		"a Status": {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not you","code":403}`,
			func(err error) bool { return apierrors.IsForbidden(err) }},
		"a proxy's": {502, "<html>", func(err error) bool { var status apierrors.APIStatus; return errors.As(err, &status) }},
		"success":   {200, "{}", func(err error) bool { return errors.Is(err, transport.ErrNotUpgraded) }},
		"redirect":  {302, "", func(err error) bool { return errors.Is(err, transport.ErrNotUpgraded) }},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			_, _, err := conn.Upgrade(t.Context(), upgradeRequest("/exec?command=s3cret"))
			require.Error(t, err)
			assert.True(t, c.check(err), "%v", err)
			assert.NotContains(t, err.Error(), "s3cret")
			assert.Equal(t, 1, requests)
		})
	}
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})}, nil)
	require.NoError(t, err)
	_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/exec?command=s3cret"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "GET http://server/exec: open a stream")
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestConn_UpgradeTimesOutWithoutResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})}, nil)
		require.NoError(t, err)
		begin := time.Now()
		_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/exec"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.NotErrorIs(t, err, context.Canceled, "the caller's ctx has not ended")
		assert.Equal(t, 61*time.Second, time.Since(begin))

		cause := errors.New("the user left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, _, err = conn.Upgrade(ctx, upgradeRequest("/exec"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cause)
	})
}

// TestConn_UpgradeBoundsHeaders has servers and proxies that never stop sending headers, or send broken ones.
func TestConn_UpgradeBoundsHeaders(t *testing.T) {
	for name, send := range map[string]func(net.Conn){
		"headers without end": func(conn net.Conn) {
			_, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n")
			for i := 0; err == nil; i++ {
				_, err = io.WriteString(conn, "X-More: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n")
			}
		},
		"one line without end": func(conn net.Conn) {
			line := make([]byte, 64<<10)
			for i := range line {
				line[i] = 'x'
			}
			for {
				if _, err := conn.Write(line); err != nil {
					return
				}
			}
		},
		"a status without text": func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 500\r\n\r\n") },
		"nothing":               func(net.Conn) {},
		"no HTTP":               func(conn net.Conn) { _, _ = io.WriteString(conn, "\x1b[2J go away\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = http.ReadRequest(bufio.NewReader(conn))
					send(conn)
					_ = conn.Close()
				}
			}()
			defer func() { _ = listener.Close(); <-done }()
			for _, cfg := range []*transport.Config{
				{Server: "http://" + listener.Addr().String()},
				{Server: "https://server.test", ProxyURL: kubeconfig.NewSecret("http://" + listener.Addr().String())},
			} {
				conn, err := transport.Open(cfg)
				require.NoError(t, err)
				var before, after runtimeMemory
				before.read()
				_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/exec"))
				after.read()
				require.Error(t, err)
				assert.NotContains(t, err.Error(), "\x1b")
				assert.Less(t, after.allocated-before.allocated, uint64(32<<20))
				conn.Close()
			}
		})
	}
}

func TestConn_UpgradeOnRealServer(t *testing.T) {
	for _, context := range []string{"admin", "token"} {
		conn, err := transport.Open(sandbox(t, context))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true"))
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, `pods "none" not found`)
	}
	conn, err := transport.Open(sandbox(t, "limited"))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true"))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestOpenKubectl_Upgrade(t *testing.T) {
	cluster.KubectlOnPath(t)
	conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Args: []string{"--kubeconfig", cluster.Kubeconfig(t)}})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, _, err = conn.Upgrade(t.Context(), upgradeRequest("/api/v1/namespaces/default/pods/none/exec?command=ls&stdout=true"))
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
