package stream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExec_RejectsBrokenHandshake has servers that open something else than the WebSocket that was asked for.
func TestExec_RejectsBrokenHandshake(t *testing.T) {
	for name, lines := range map[string]string{
		"another protocol":     "Upgrade: h2c\r\nConnection: Upgrade\r\n",
		"no answer to the key": "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
		"a wrong answer":       "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if assert.NoError(t, err) {
					_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+lines+"\r\n")
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}
			}, func(t *testing.T, pods pods) {
				require.ErrorIs(t, execLs(t, pods), websocket.ErrBadHandshake)
			})
		})
	}
}

// TestExec_SurvivesBrokenProxy has an HTTP proxy whose answers to CONNECT are none.
func TestExec_SurvivesBrokenProxy(t *testing.T) {
	for name, reply := range map[string]string{
		"a status without text": "HTTP/1.1 500\r\n\r\n",
		"no HTTP":               "\x1b[2Jgo away\r\n\r\n",
		"headers without end":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-More: "+strings.Repeat("x", 1000)+"\r\n", 4000),
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
					_, _ = io.WriteString(conn, reply)
					_ = conn.Close()
				}
			}()
			defer func() { _ = listener.Close(); <-done }()
			conn, err := transport.Open(&transport.Config{Server: "https://server.test", ProxyURL: "http://" + listener.Addr().String()})
			require.NoError(t, err)
			defer conn.Close()
			err = stream.Exec(t.Context(), pods{conn}, "web-0", &stream.ExecOptions{Command: ls})
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "\x1b")
		})
	}
}
