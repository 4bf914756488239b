package stream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it, and nothing depends on its strength
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/retry"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// messageSize is the most that one message of ours carries beside its channel. With that and the frame's header of
	// 8 bytes it fills two records of TLS, and does not begin a third.
	messageSize = 32<<10 - 1 - 8
	// writeBuffer has room for a whole message: the server takes each fragment of one for a message of its own.
	writeBuffer = 32 << 10
	// readBuffer is small, because what is larger is read past it.
	readBuffer = 4 << 10
)

// writeBuffers are gorilla's: most sockets write little and seldom.
var writeBuffers sync.Pool

// foreignError is a handshake that was refused by other words than those of the API: it may succeed with another
// protocol.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// dial opens a WebSocket on one of an object's subresources with one of the protocols, which the server chooses; the
// first is the one to prefer. The end of ctx closes the socket until its release is called. The caller closes it. An
// error wraps a *foreignError where it may help to ask for other protocols.
//
// The handshake is made by package transport, so that it goes through the same round trippers and proxy, and is bounded,
// as every other request. gorilla then gets a connection that repeats it, as it has no constructor for one that is open.
func dial(ctx context.Context, conn *transport.Conn, path string, query url.Values, protocols ...string) (*socket, error) {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	challenge := base64.StdEncoding.EncodeToString(nonce)
	raw, header, err := conn.Upgrade(ctx, &transport.Request{Path: path, Query: query, Header: http.Header{
		// Nodes refuse to forward ports for somebody who accepts nothing but JSON.
		"Accept":                 {"*/*"},
		"Upgrade":                {"websocket"},
		"Sec-Websocket-Version":  {"13"},
		"Sec-Websocket-Key":      {challenge},
		"Sec-Websocket-Protocol": {strings.Join(protocols, ", ")},
	}})
	if err != nil {
		return nil, refusedDial(ctx, err, path, protocols)
	}
	if err := checkHandshake(header, challenge, protocols); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("GET %s%s: open a stream: %w", conn.Server(), path, err)
	}
	// The end of ctx ends what waits for the connection, gorilla below included.
	release := context.AfterFunc(ctx, func() { _ = raw.Close() })
	ws, err := newWebSocket(ctx, raw, header.Get("Sec-Websocket-Protocol"))
	if err != nil {
		release()
		_ = raw.Close()
		return nil, retry.WithContextError(ctx, fmt.Errorf("GET %s%s: open a stream: %w", conn.Server(), path, err))
	}
	return newSocket(ws, raw, release), nil
}

// refusedDial returns the error of a handshake that transport reports as failed.
func refusedDial(ctx context.Context, err error, path string, protocols []string) error {
	err = retry.WithContextError(ctx, err)
	var status apierrors.APIStatus
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, transport.ErrNotUpgraded):
		err = fmt.Errorf("%w: %w", websocket.ErrBadHandshake, err)
	case !errors.As(err, &status) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return explained(err, path)
	}
	return &foreignError{fmt.Errorf("%w (asked for %s)", err, strings.Join(protocols, " or "))}
}

// checkHandshake returns an error unless a server has opened a WebSocket with one of the protocols:
// https://www.rfc-editor.org/rfc/rfc6455#section-4.1.
func checkHandshake(header http.Header, challenge string, protocols []string) error {
	chosen := header.Get("Sec-Websocket-Protocol")
	switch {
	case !strings.EqualFold(header.Get("Upgrade"), "websocket"), header.Get("Sec-Websocket-Accept") != acceptKey(challenge):
		return fmt.Errorf("%w: the server switches to another protocol than WebSocket", websocket.ErrBadHandshake)
	case header.Get("Sec-Websocket-Extensions") != "":
		return fmt.Errorf("%w: the server uses an extension that it was not asked for", websocket.ErrBadHandshake)
	case !slices.Contains(protocols, chosen):
		asked := strings.Join(protocols, ", ")
		return &foreignError{fmt.Errorf("the server speaks none of the protocols %s, but %q (asked for %s)",
			asked, sanitize.Text(chosen, 64), strings.Join(protocols, " or "))}
	}
	return nil
}

// acceptKey returns how a server answers the challenge of a handshake.
func acceptKey(challenge string) string {
	sum := sha1.Sum([]byte(challenge + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}

// newWebSocket makes a WebSocket of a connection on which it has been opened already.
func newWebSocket(ctx context.Context, raw net.Conn, protocol string) (*websocket.Conn, error) {
	opened := &openedConn{Conn: &wire{Conn: raw}, protocol: protocol}
	dialer := &websocket.Dialer{
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
		NetDialContext: func(context.Context, string, string) (net.Conn, error) { return opened, nil },
	}
	ws, _, err := dialer.DialContext(ctx, "ws://opened", nil) //nolint:bodyclose // gorilla has replaced it
	return ws, err
}

// openedConn answers gorilla's handshake itself, and is its connection after that.
type openedConn struct {
	net.Conn
	protocol string
	request  bytes.Buffer
	answer   []byte
	answered bool
}

func (c *openedConn) Write(p []byte) (int, error) {
	if c.answered {
		return c.Conn.Write(p)
	}
	c.request.Write(p)
	_, challenge, found := bytes.Cut(c.request.Bytes(), []byte("\r\nSec-WebSocket-Key: "))
	if challenge, _, ended := bytes.Cut(challenge, []byte("\r\n")); found && ended && bytes.HasSuffix(c.request.Bytes(), []byte("\r\n\r\n")) {
		c.answer = fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", acceptKey(string(challenge)), c.protocol)
		c.answered, c.request = true, bytes.Buffer{}
	}
	return len(p), nil
}

func (c *openedConn) Read(p []byte) (int, error) {
	if len(c.answer) > 0 {
		n := copy(p, c.answer)
		c.answer = c.answer[n:]
		return n, nil
	}
	if !c.answered {
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(p)
}
