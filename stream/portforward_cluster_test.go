package stream_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
)

// What the ports of the sandbox's pods do; every other echoes.
const (
	portNobody = 1
	portShell  = 2 // runs the first line that it is sent
	portEcho   = 7
	portHTTP   = 8080
)

type halfCloser interface{ CloseWrite() error }

// dialPort opens a connection that ends with the test.
func dialPort(t testing.TB, target stream.Target, name string, port int) net.Conn {
	t.Helper()
	conn, err := stream.DialPort(t.Context(), target, name, port)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestDialPort_Conn(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")

	conn := dialPort(t, pods, "web-0", portEcho)
	assert.Equal(t, "web-0:7", conn.RemoteAddr().String())
	random := make([]byte, 3<<20)
	_, _ = rand.Read(random)
	go func() {
		_, err := conn.Write(random)
		assert.NoError(t, err)
		// The other direction stays open: the echo is still to come.
		assert.NoError(t, conn.(halfCloser).CloseWrite())
	}()
	echoed, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(random, echoed), "%d bytes came back of %d", len(echoed), len(random))
	_, err = conn.Write([]byte("more"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.NoError(t, conn.Close())
	require.ErrorIs(t, conn.Close(), net.ErrClosed)
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestDialPort_PodCloses(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	conn := dialPort(t, pods, "web-0", portShell)
	_, err := io.WriteString(conn, "echo bye; exec <&-\n")
	require.NoError(t, err)
	require.NoError(t, conn.(halfCloser).CloseWrite())
	response, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "bye\n", string(response))
}

func TestDialPort_NodeErrors(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")

	_, err := dialPort(t, pods, "web-0", portNobody).Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "web-0")
	var operation *net.OpError
	require.ErrorAs(t, err, &operation)
	assert.False(t, operation.Timeout())

	broken := dialPort(t, pods, "web-0", portShell)
	_, err = io.WriteString(broken, "echo half; exit 3\n")
	require.NoError(t, err)
	require.NoError(t, broken.(halfCloser).CloseWrite())
	response, err := io.ReadAll(broken)
	assert.Equal(t, "half\n", string(response))
	require.ErrorContains(t, err, "exit status 3")
}

func TestDialPort_DialErrors(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	_, err := stream.DialPort(t.Context(), pods, "none", portEcho)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = stream.DialPort(t.Context(), pods, "web-0", "http")
	require.ErrorContains(t, err, `no port named "http"`)
	_, err = stream.DialPort(t.Context(), pods, "", portEcho)
	require.Error(t, err)

	limited, err := connect(t, "limited").Resource(t.Context(), "pods")
	require.NoError(t, err)
	path, err := pods.Path("web-0")
	require.NoError(t, err)
	_, err = stream.DialPort(t.Context(), at{path, limited.Conn()}, "web-0", portEcho)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `resources: ["pods/portforward"], verbs: ["get", "create"]`)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	_, err = stream.DialPort(ctx, pods, "web-0", portEcho)
	require.ErrorIs(t, err, context.Canceled)
}

// at is a target of one path.
type at struct {
	path string
	conn *transport.Conn
}

func (a at) Path(string) (string, error) { return a.path, nil }
func (a at) Conn() *transport.Conn       { return a.conn }

func TestDialPort_Deadlines(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
	defer closed(t, dialer)
	conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:7")
	require.NoError(t, err)
	defer closed(t, conn)
	other, err := dialer.DialContext(t.Context(), "tcp", "web-0:7")
	require.NoError(t, err)
	defer closed(t, other)

	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	for _, c := range []net.Conn{conn, other} {
		echo(t, c, "still there")
	}
}

// echo sends a text and reads it back.
func echo(t testing.TB, conn io.ReadWriter, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	back := make([]byte, len(text))
	_, err = io.ReadFull(conn, back)
	require.NoError(t, err)
	assert.Equal(t, text, string(back))
}

func TestPortDialer_ManyConnectionsShareTunnel(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
	defer closed(t, dialer)
	var all sync.WaitGroup
	conns := make(chan net.Conn, 200)
	for i := range cap(conns) {
		all.Go(func() {
			conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:7")
			if assert.NoError(t, err) {
				echo(t, conn, strings.Repeat(fmt.Sprint(i), 1000))
				conns <- conn
			}
		})
	}
	all.Wait()
	close(conns)
	local := map[string]bool{} // the tunnels' addresses
	for conn := range conns {
		local[conn.LocalAddr().String()] = true
		echo(t, conn, "all open")
		require.NoError(t, conn.Close())
	}
	assert.Len(t, local, 1)
}

func TestPortDialer_SlowReaderBlocksOnlyItself(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	dialer := &stream.PortDialer{Target: pods}
	defer closed(t, dialer)
	slow, err := dialer.DialContext(t.Context(), "tcp", "web-0:2")
	require.NoError(t, err)
	defer closed(t, slow)
	const size = 64 << 20
	_, err = fmt.Fprintf(slow, "head -c %d /dev/zero\n", size)
	require.NoError(t, err)
	require.NoError(t, slow.(halfCloser).CloseWrite())
	for range 20 {
		conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:7")
		require.NoError(t, err)
		echo(t, conn, strings.Repeat("quick", 10_000))
		require.NoError(t, conn.Close())
	}
	n, err := io.Copy(io.Discard, slow)
	require.NoError(t, err)
	assert.EqualValues(t, size, n)
}

// The node's worker for a connection is stuck when nobody in the pod reads its input: kubectl then hangs.
func TestPortDialer_UnreadInputBlocksOnlyItself(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
	defer closed(t, dialer)
	for range 5 {
		conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:2")
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "echo hello\n"+strings.Repeat("unread", 100_000))
		_ = conn.(halfCloser).CloseWrite()
		response, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Equal(t, "hello\n", string(response))
		require.NoError(t, conn.Close())
	}
}

func TestPortDialer_HTTPTransport(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	dialer := &stream.PortDialer{Target: pods}
	defer closed(t, dialer)
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	for range 3 {
		response, err := (&http.Client{Transport: transport}).Get("http://web-0:8080/healthz")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
	}
}

func TestPortDialer_KilledServer(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	dialer := &stream.PortDialer{Target: pods}
	defer closed(t, dialer)
	conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:2")
	require.NoError(t, err)
	defer closed(t, conn)
	_, err = io.WriteString(conn, "cat /dev/zero\n")
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, conn, 1<<20)
	require.NoError(t, err)
	copied := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		copied <- err
	}()
	cluster.RestartAPIServer(t, true)
	require.ErrorIs(t, <-copied, io.ErrUnexpectedEOF)
	_, err = conn.Write([]byte("x"))
	require.Error(t, err)

	again, err := dialer.DialContext(t.Context(), "tcp", "web-0:7")
	require.NoError(t, err)
	defer closed(t, again)
	echo(t, again, "a new tunnel")
}

// forwarding runs Forward on a listener of its own.
func forwarding(t testing.TB, dialer *stream.PortDialer, address string) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- dialer.Forward(ctx, address, listener) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, dialer.Close())
	})
	return listener.Addr()
}

func TestForward_SameAsKubectl(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	path, err := pods.Path("web-0")
	require.NoError(t, err)
	namespace := strings.Split(path, "/")[4]
	ours := forwarding(t, &stream.PortDialer{Target: pods}, "web-0:2")

	ctx, cancel := context.WithCancel(t.Context())
	oracle := exec.CommandContext(ctx, cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "-n", namespace, "port-forward", "web-0", ":2")
	output, err := oracle.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, oracle.Start())
	defer func() { cancel(); _ = oracle.Wait() }()
	line := make([]byte, 200)
	n, err := output.Read(line)
	require.NoError(t, err)
	theirs := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(line[:n]))
	require.NotEmpty(t, theirs, "%s", line)

	for _, script := range []string{
		"cat >/dev/null; echo hello",
		"cat", // until the input ends
		"cat >/dev/null; head -c 5000000 /dev/zero | tr '\\0' x", // much
		"cat >/dev/null", // nothing
		"wc -c",
	} {
		var responses []string
		for _, address := range []string{ours.String(), theirs} {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			require.NoError(t, err)
			_, err = io.WriteString(conn, script+"\n"+strings.Repeat("0123456789", 100_000))
			require.NoError(t, err)
			require.NoError(t, conn.(halfCloser).CloseWrite())
			response := sha256.New()
			size, err := io.Copy(response, conn)
			require.NoError(t, err, "%s at %s", script, address)
			require.NoError(t, conn.Close())
			responses = append(responses, fmt.Sprintf("%d bytes, %x", size, response.Sum(nil)))
		}
		assert.Equal(t, responses[1], responses[0], script)
	}
}

func TestForward_ResetsClients(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	failures := make(chan error, 1)
	failed := func(client net.Addr, err error) {
		assert.NotEmpty(t, client.String())
		failures <- err
	}
	for address, want := range map[string]string{"web-0:1": "connection refused", "web-0:2": "exit status 3"} {
		listening := forwarding(t, &stream.PortDialer{Target: pods, OnError: failed}, address)
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listening.String())
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "exit 3\n")
		_ = conn.(halfCloser).CloseWrite()
		_, err = io.ReadAll(conn)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.ErrorContains(t, <-failures, want)
		require.NoError(t, conn.Close())
	}
}

func TestForward_Unreachable(t *testing.T) {
	pods := podsOf(t)
	for name, want := range map[string]string{"none": "not found", "": "the name is empty"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.ErrorContains(t, stream.ForwardPort(t.Context(), pods, name, portEcho, listener), want)
		_, err = listener.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

func TestForward_APIServerRestart(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	address := forwarding(t, &stream.PortDialer{Target: pods}, "web-0:7")
	open := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address.String())
		require.NoError(t, err)
		echo(t, conn, "hello")
		return conn
	}
	before := open()
	defer closed(t, before)
	cluster.RestartAPIServer(t, true)
	_, err := before.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	closed(t, open())
}
