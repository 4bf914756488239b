package stream_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
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

// serving runs a test with a scripted server in a bubble, where time passes when nothing else happens: a minute of idleness
// costs none, and a goroutine that is left behind fails the test.
func serving(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, pods pods)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, conn, stop := memconn.Serve(t, handler, memconn.Fault{}, nil)
		defer stop()
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

const v5 = "v5.channel.k8s.io"

// send sends messages; the first byte of each is its channel.
func send(ws *websocket.Conn, messages ...string) {
	for _, message := range messages {
		_ = ws.WriteMessage(websocket.BinaryMessage, []byte(message))
	}
}

// receive reads messages until the connection ends or the input does.
func receive(ws *websocket.Conn) (received []string) {
	for {
		_, message, err := ws.ReadMessage()
		if err != nil {
			return received
		}
		received = append(received, string(message))
		if string(message) == "\xff\x00" {
			return received
		}
	}
}

const (
	success = "\x03" + `{"metadata":{},"status":"Success"}`
	exit3   = "\x03" + `{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`
	failure = "\x03" + `{"metadata":{},"status":"Failure","message":"no such file: lss","reason":"InternalError","code":500}`
)

// closeNormally ends a connection as servers do.
func closeNormally(ws *websocket.Conn) {
	_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}
