package wsconn

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// responseTo returns the headers of a server that opens the WebSocket.
func responseTo(h *Handshake) http.Header {
	return http.Header{
		"Upgrade": {"websocket"}, "Sec-Websocket-Accept": {acceptKey(h.key)}, "Sec-Websocket-Protocol": {h.protocol},
	}
}

func TestHandshake_OpenChecksResponse(t *testing.T) {
	for name, value := range map[string]string{
		"Upgrade": "h2c", "Sec-Websocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-Websocket-Protocol": "other",
		"Sec-Websocket-Extensions": "permessage-deflate",
	} {
		h := NewHandshake("v5.channel.k8s.io")
		response := responseTo(h)
		response.Set(name, value)
		client, server := net.Pipe()
		_, err := h.Open(t.Context(), client, response)
		require.ErrorIs(t, err, ErrBadHandshake, name)
		_, err = server.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the connection is closed")
	}
}

// inBubble runs a test with an open connection.
func inBubble(t *testing.T, test func(t *testing.T, c *Conn, server net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandshake("v5.channel.k8s.io")
		client, server := net.Pipe()
		c, err := h.Open(t.Context(), client, responseTo(h))
		require.NoError(t, err)
		defer c.Close()
		test(t, c, server)
	})
}

func TestConn_ReadsBytesOfMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Conn, server net.Conn) {
		go func() {
			_, _ = server.Write([]byte("\x82\x03abc\x82\x00\x82\x02de\x88\x05\x03\xe8a\x1bb"))
			_ = server.Close()
		}()
		text, err := io.ReadAll(c)
		assert.Equal(t, "abcde", string(text))
		var closed *websocket.CloseError
		require.ErrorAs(t, EndError(err), &closed)
		require.ErrorIs(t, EndError(err), io.ErrUnexpectedEOF)
		assert.NotContains(t, EndError(err).Error(), "\x1b")
		other := errors.New("other")
		assert.Equal(t, other, EndError(other))
	})
}

func TestConn_ReadTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Conn, _ net.Conn) {
		time.Sleep(time.Hour) // without a reader there is no time-out
		begun := time.Now()
		for range 2 {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, ErrUnresponsive)
		}
		assert.Equal(t, readTimeout, time.Since(begun))
	})
}
