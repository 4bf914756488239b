package transport_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
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

// roundTripper is a round tripper without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// newResponse returns a response whose headers are name and value by turns.
func newResponse(req *http.Request, code int, body string, headers ...string) *http.Response {
	response := &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(body)),
	}
	for i := 0; i+1 < len(headers); i += 2 {
		response.Header.Add(headers[i], headers[i+1])
	}
	return response
}

func TestConn_DoWaitsBetweenRetries(t *testing.T) {
	for _, retryAfter := range []string{"0", "2"} {
		synctest.Test(t, func(t *testing.T) {
			var posts []time.Time
			conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				posts = append(posts, time.Now())
				return newResponse(req, http.StatusServiceUnavailable, "", "Retry-After", retryAfter), nil
			})}, nil)
			require.NoError(t, err)
			_, err = conn.Do(t.Context(), &transport.Request{Method: http.MethodPost, Path: "/x", Body: []byte("{}")})
			assert.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
			require.Len(t, posts, 11)
			least := 50 * time.Millisecond
			if retryAfter == "2" {
				least = 2 * time.Second
			}
			differ := map[time.Duration]bool{}
			for i := range posts[1:] {
				wait := posts[i+1].Sub(posts[i])
				assert.GreaterOrEqual(t, wait, least)
				assert.LessOrEqual(t, wait, 3*time.Second)
				differ[wait] = true
			}
			assert.Greater(t, len(differ), 5, "jitter")
			if retryAfter == "0" {
				assert.Greater(t, posts[10].Sub(posts[9]), time.Second-1, "the delay grows")
			}
		})
	}
}

func TestConn_DoReportsContextErrorAndCause(t *testing.T) {
	cause := errors.New("the user left")
	synctest.Test(t, func(t *testing.T) {
		conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})}, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err = conn.Do(ctx, &transport.Request{Path: "/x"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cause)
	})
}

func TestConn_DoBoundsDecompressedErrorBody(t *testing.T) {
	member := func(text string) []byte {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return packed.Bytes()
	}
	bomb := slices.Concat(member(`{"kind":"Status","message":"`), bytes.Repeat(member(strings.Repeat("a", 1<<20)), 64))
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(bomb)
	})
	var before, after runtimeMemory
	before.read()
	_, err := conn.Do(t.Context(), &transport.Request{Path: "/x"})
	after.read()
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 2000)
	assert.Less(t, after.allocated-before.allocated, uint64(32<<20))
}

func TestConn_DoErrorOfResponseWithoutRequest(t *testing.T) {
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return newResponse(nil, http.StatusBadGateway, "no backend"), nil // as made by round trippers that do not send the request
	})}, nil)
	require.NoError(t, err)
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/api"})
	require.ErrorContains(t, err, "GET http://server/api: the response is 502 Bad Gateway")
}

func TestConn_DoEscapesTerminalControl(t *testing.T) {
	for name, body := range map[string]string{
		"a Status": `{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"no\u001b]0;title\u0007\nsecond line\u202e` +
			strings.Repeat("x", 40<<10) + `","details":{"causes":[{"message":"a\u001b[2J"}]}}`,
		"no Status": "<html>\x1b[2J\x9b\u202e" + strings.Repeat("x", 40<<10),
	} {
		t.Run(name, func(t *testing.T) {
			conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, body)
			})
			_, err := conn.Do(t.Context(), &transport.Request{Path: "/x"})
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotRegexp(t, `[\x00-\x1f\x7f-\x9f\x{202e}]`, err.Error())
			assert.Less(t, len(err.Error()), 17<<10)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			for _, cause := range status.Status().Details.Causes {
				assert.NotContains(t, cause.Message, "\x1b")
			}
		})
	}
}

func TestConn_DoEscapesProxysStatusLine(t *testing.T) {
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.Join(errors.New("go \x1b[2J away"), io.ErrNoProgress)
	})}, nil)
	require.NoError(t, err)
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/x"})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.ErrorContains(t, err, `go away`)
}

// hijacked serves raw connections: respond gets each request's connection and closes it when it returns.
func hijacked(t *testing.T, newResponse func(attempt int, conn net.Conn)) (conn *transport.Conn, attempts *atomic.Int32) {
	t.Helper()
	attempts = &atomic.Int32{}
	conn = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		raw, _, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = raw.Close() }()
		newResponse(int(attempts.Add(1)), raw)
	})
	return conn, attempts
}

func TestConn_DoRetriesReads(t *testing.T) {
	reset := func(conn net.Conn) {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	for name, breaks := range map[string]func(net.Conn){
		"closed":        func(net.Conn) {},
		"reset":         reset,
		"half a header": func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 O") },
	} {
		t.Run(name, func(t *testing.T) {
			conn, attempts := hijacked(t, func(attempt int, conn net.Conn) {
				if attempt < 3 {
					breaks(conn)
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			})
			response, err := conn.Do(t.Context(), &transport.Request{Path: "/api"})
			require.NoError(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, "ok", string(body))
			assert.EqualValues(t, 3, attempts.Load())
		})
	}
}

func TestConn_DoGivesUpRetrying(t *testing.T) {
	conn, attempts := hijacked(t, func(int, net.Conn) {})
	err := do(t, conn, &transport.Request{Path: "/api"})
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "/prefix/api")
	assert.EqualValues(t, 4, attempts.Load())
}

func TestConn_DoDoesNotRetryWrites(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		conn, attempts := hijacked(t, func(int, net.Conn) {})
		require.Error(t, do(t, conn, &transport.Request{Method: method, Path: "/api", Body: []byte("{}")}))
		assert.EqualValues(t, 1, attempts.Load(), method)
	}
}

func TestConn_DoTruncatedBody(t *testing.T) {
	conn, _ := hijacked(t, func(_ int, conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf")
	})
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/api"})
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestConn_DoCanceledWithoutResponse(t *testing.T) {
	asked := make(chan struct{}, 1)
	leave := make(chan struct{})
	conn := serve(t, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-leave
	})
	defer close(leave)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
	require.ErrorIs(t, err, context.Canceled)
}

func TestConn_DoBoundsErrorText(t *testing.T) {
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat("x", 10<<20))
	})
	err := do(t, conn, &transport.Request{Path: "/api"})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.Less(t, len(err.Error()), 600)
}

func TestConn_DoAfterGoAway(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "HTTP/2.0", r.Proto)
		w.Header().Set("Connection", "close") // over HTTP/2 this is a GOAWAY
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, Insecure: true})
	require.NoError(t, err)
	defer conn.Close()
	for range 3 {
		require.NoError(t, do(t, conn, &transport.Request{Path: "/api"}))
	}
	assert.EqualValues(t, 3, connections.Load())
}

func TestConfig_ProxyURL(t *testing.T) {
	var target string
	var connects atomic.Int32
	server, authority := serveTLS(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.MethodConnect, r.Method)
		if user, _, _ := parseProxyAuth(r); user != "ann" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		connects.Add(1)
		target = r.Host
		tunnel(t, w, r)
	}))
	defer proxy.Close()
	address := strings.TrimPrefix(proxy.URL, "http://")

	got, err := ask(t, &transport.Config{Server: server, CAData: authority, Token: kubeconfig.NewSecret("t"), ProxyURL: kubeconfig.NewSecret("http://ann:s3cret@" + address)})
	require.NoError(t, err)
	assert.Equal(t, "HTTP/2.0 nobody Bearer t", got)
	parsed, err := url.Parse(server)
	require.NoError(t, err)
	assert.Equal(t, parsed.Host, target)
	assert.EqualValues(t, 1, connects.Load())

	_, err = ask(t, &transport.Config{Server: server, CAData: authority, ProxyURL: kubeconfig.NewSecret("http://eve:s3cret@" + address)})
	require.ErrorContains(t, err, "Proxy Authentication Required")
	assert.NotContains(t, err.Error(), "s3cret")
	proxy.Close()
	_, err = ask(t, &transport.Config{Server: server, CAData: authority, ProxyURL: kubeconfig.NewSecret("http://ann:s3cret@" + address)})
	require.ErrorContains(t, err, "proxyconnect")
	assert.NotContains(t, err.Error(), "s3cret")
}

func parseProxyAuth(r *http.Request) (user, password string, ok bool) {
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	return r.BasicAuth()
}

// tunnel serves CONNECT as a proxy does.
func tunnel(t *testing.T, w http.ResponseWriter, r *http.Request) {
	far, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if !assert.NoError(t, err) {
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if !assert.NoError(t, err) {
		return
	}
	_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
	go splice(far, buffered.Reader)
	go splice(near, far)
}

func splice(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// TestConfig_ProxyURLSOCKS5 speaks just enough of RFC 1928 for one connection.
func TestConfig_ProxyURLSOCKS5(t *testing.T) {
	server, authority := serveTLS(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		in := bufio.NewReader(near)
		greeting := make([]byte, 3)
		_, _ = io.ReadFull(in, greeting)
		_, _ = near.Write([]byte{5, 0})
		request := make([]byte, 10)
		_, _ = io.ReadFull(in, request)
		address := fmt.Sprintf("%d.%d.%d.%d:%d", request[4], request[5], request[6], request[7], int(request[8])<<8|int(request[9]))
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
		if err != nil {
			_ = near.Close()
			return
		}
		_, _ = near.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		go splice(near, far)
		splice(far, in)
	}()
	got, err := ask(t, &transport.Config{Server: server, CAData: authority, Token: kubeconfig.NewSecret("t"), ProxyURL: kubeconfig.NewSecret("socks5://" + listener.Addr().String())})
	require.NoError(t, err)
	assert.Equal(t, "HTTP/2.0 nobody Bearer t", got)
}

// runtimeMemory returns the bytes that the program has allocated so far.
type runtimeMemory struct{ allocated uint64 }

func (m *runtimeMemory) read() {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.allocated = stats.TotalAlloc
}
