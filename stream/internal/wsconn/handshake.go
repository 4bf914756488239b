package wsconn

import (
	"bytes"
	"context"
	"crypto/fips140"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 requires it, and nothing depends on its strength
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/anykind/anykind/internal/sanitize"
)

const (
	// writeBufferSize has room for a whole message: servers treat each fragment of a message as a message of its own.
	writeBufferSize = 32 << 10
	readBufferSize  = 4 << 10 // small, because larger reads bypass it
)

// writeBuffers are gorilla's: most connections write little and seldom.
var writeBuffers sync.Pool

// ErrBadHandshake is the error of a server that does not open a WebSocket.
var ErrBadHandshake = websocket.ErrBadHandshake

// Handshake is a client's request to open a WebSocket with a subprotocol.
type Handshake struct{ key, protocol string }

// NewHandshake returns a handshake with a random key.
func NewHandshake(protocol string) *Handshake {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	return &Handshake{base64.StdEncoding.EncodeToString(key), protocol}
}

// Header returns the headers of the request.
func (h *Handshake) Header() http.Header {
	return http.Header{
		"Upgrade":                {"websocket"},
		"Sec-Websocket-Version":  {"13"},
		"Sec-Websocket-Key":      {h.key},
		"Sec-Websocket-Protocol": {h.protocol},
	}
}

// Open opens the WebSocket on raw after a response of 101 with the headers in response. The end of ctx closes it until
// [Conn.Detach]. The caller closes the Conn; on failure Open closes raw.
func (h *Handshake) Open(ctx context.Context, raw net.Conn, response http.Header) (*Conn, error) {
	if err := h.check(response); err != nil {
		_ = raw.Close()
		return nil, err
	}
	detach := context.AfterFunc(ctx, func() { _ = raw.Close() })
	loopback := &loopbackConn{Conn: &timeoutConn{Conn: raw}, protocol: h.protocol}
	dialer := &websocket.Dialer{
		ReadBufferSize: readBufferSize, WriteBufferSize: writeBufferSize, WriteBufferPool: &writeBuffers,
		NetDialContext: func(context.Context, string, string) (net.Conn, error) { return loopback, nil },
	}
	var ws *websocket.Conn
	var err error
	fips140.WithoutEnforcement(func() { // gorilla checks the digest, too, and starts no goroutine
		ws, _, err = dialer.DialContext(ctx, "ws://opened", nil) //nolint:bodyclose // gorilla has replaced it
	})
	if err != nil {
		detach()
		_ = raw.Close()
		return nil, err
	}
	return newConn(ws, raw, detach), nil
}

// check returns an error unless the server has opened a WebSocket with the protocol:
// https://www.rfc-editor.org/rfc/rfc6455#section-4.1.
func (h *Handshake) check(response http.Header) error {
	switch protocol := response.Get("Sec-Websocket-Protocol"); {
	case !strings.EqualFold(response.Get("Upgrade"), "websocket"), response.Get("Sec-Websocket-Accept") != acceptKey(h.key):
		return fmt.Errorf("%w: the server does not switch to WebSocket", ErrBadHandshake)
	case response.Get("Sec-Websocket-Extensions") != "":
		return fmt.Errorf("%w: the server uses an extension that was not offered", ErrBadHandshake)
	case protocol != h.protocol:
		return fmt.Errorf("%w: the server chose the protocol %q, not %s", ErrBadHandshake, sanitize.Text(protocol, 64), h.protocol)
	}
	return nil
}

// acceptKey returns the server's response to the key of a handshake. GODEBUG=fips140=only permits no SHA-1. Here SHA-1 secures
// nothing.
func acceptKey(key string) string {
	var sum [sha1.Size]byte
	fips140.WithoutEnforcement(func() {
		sum = sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	})
	return base64.StdEncoding.EncodeToString(sum[:])
}

// loopbackConn responds to gorilla's handshake itself, and is the connection after that.
type loopbackConn struct {
	net.Conn
	protocol  string
	request   bytes.Buffer
	response  []byte
	responded bool
}

func (c *loopbackConn) Write(p []byte) (int, error) {
	if c.responded {
		return c.Conn.Write(p)
	}
	c.request.Write(p)
	_, key, found := bytes.Cut(c.request.Bytes(), []byte("\r\nSec-WebSocket-Key: "))
	if key, _, ended := bytes.Cut(key, []byte("\r\n")); found && ended && bytes.HasSuffix(c.request.Bytes(), []byte("\r\n\r\n")) {
		c.response = fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", acceptKey(string(key)), c.protocol)
		c.responded = true
		c.request = bytes.Buffer{}
	}
	return len(p), nil
}

func (c *loopbackConn) Read(p []byte) (int, error) {
	if len(c.response) > 0 {
		n := copy(p, c.response)
		c.response = c.response[n:]
		return n, nil
	}
	if !c.responded {
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(p)
}
