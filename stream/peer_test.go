package stream_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pods is a handle on the pods of a scripted server.
type pods struct{ conn *transport.Conn }

func (p pods) Path(name string) (string, error) {
	if name == "" {
		return "/api/v1/namespaces/shop/pods", nil
	}
	return "/api/v1/namespaces/shop/pods/" + name, nil
}

func (p pods) Conn() *transport.Conn { return p.conn }

var _ stream.Target = pods{}

// memory is a listener without a network: connections are net.Pipes, whose time-outs obey the bubble's clock.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.closed) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.conns <- theirs:
		return ours, nil
	case <-m.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serving runs a test with a scripted server in a bubble, where time passes when nothing else happens: a minute of
// silence costs none, and a goroutine that is left behind fails the test.
func serving(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, pods pods)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := httptest.NewUnstartedServer(handler)
		require.NoError(t, server.Listener.Close())
		server.Listener = listener
		server.Start()
		defer server.Close()
		client := &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
		conn, err := transport.New("http://server.test", client, nil)
		require.NoError(t, err)
		defer conn.Close()
		test(t, pods{conn})
	})
}

// upgrading is a server that opens every stream with one of its protocols and then acts by the script.
func upgrading(t *testing.T, script func(ws *websocket.Conn, r *http.Request), protocols ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: protocols}
		ws, err := upgrader.Upgrade(w, r, nil)
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = ws.Close() }()
		script(ws, r)
	}
}

const (
	v5 = "v5.channel.k8s.io"
	v4 = "v4.channel.k8s.io"
)

// say sends messages; the first byte of each is its channel.
func say(ws *websocket.Conn, messages ...string) {
	for _, message := range messages {
		_ = ws.WriteMessage(websocket.BinaryMessage, []byte(message))
	}
}

// hear reads messages until the connection ends or the input does.
func hear(ws *websocket.Conn) (heard []string) {
	for {
		_, message, err := ws.ReadMessage()
		if err != nil {
			return heard
		}
		heard = append(heard, string(message))
		if string(message) == "\xff\x00" {
			return heard
		}
	}
}

const (
	success = "\x03" + `{"metadata":{},"status":"Success"}`
	exit3   = "\x03" + `{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`
	failure = "\x03" + `{"metadata":{},"status":"Failure","message":"no such file: lss","reason":"InternalError","code":500}`
)

// goodbye ends a connection as servers do.
func goodbye(ws *websocket.Conn) {
	_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}

// discardLog keeps a server's complaints to itself.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
