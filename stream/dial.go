package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// messageSize is the most that one message of ours carries beside its channel. With that and the frame's header of
	// 8 bytes it fills two records of TLS, and does not begin a third.
	messageSize = 32<<10 - 1 - 8
	// writeBuffer has room for a whole message: the server takes each fragment of one for a message of its own.
	writeBuffer = 32 << 10
	// readBuffer is small, because what is larger is read past it.
	readBuffer = 4 << 10
	// shownBody is how much gorilla keeps of the body of a refusal.
	shownBody = 1 << 10
)

// writeBuffers are gorilla's: most sockets write little and seldom.
var writeBuffers sync.Pool

// dialing is one attempt to open a WebSocket.
type dialing struct {
	ctx       context.Context
	request   *transport.Request
	protocols []string

	opened *socket
	// foreign is set where what refused the handshake did not do so as an API server does, with a Status: it may not
	// know the protocols, or not the API.
	foreign bool
	// cut is set where the refusal's body is too long to have been kept.
	cut bool
}

// foreignError is a handshake that was refused by other words than those of the API: it may succeed with another
// protocol.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// dial opens a WebSocket on one of an object's subresources with one of the protocols, which the server chooses; the
// first is the one to prefer. The end of ctx closes the socket until its release is called. The caller closes it. An
// error wraps a *foreignError where it may help to ask for other protocols.
func dial(ctx context.Context, conn *transport.Conn, path string, query url.Values, protocols ...string) (*socket, error) {
	// Nodes refuse to forward ports for somebody who accepts nothing but JSON.
	request := &transport.Request{Path: path, Query: query, Header: http.Header{"Accept": {"*/*"}}}
	attempt := &dialing{ctx: ctx, request: request, protocols: protocols}
	err := ended(ctx, conn.Upgrade(ctx, attempt.request, attempt.shake))
	switch {
	case err == nil:
		return attempt.opened, nil
	case ctx.Err() != nil:
		return nil, err
	case attempt.cut:
		err = attempt.askAgain(conn, err)
	case attempt.foreign:
		return nil, &foreignError{fmt.Errorf("%w (asked for %s)", err, strings.Join(protocols, " or "))}
	}
	return nil, explained(err, path)
}

// shake makes the handshake, as transport.Conn.Upgrade asks.
func (d *dialing) shake(handshake *transport.Handshake) (*http.Response, error) {
	var raw net.Conn
	release := func() bool { return true }
	dialer := &websocket.Dialer{
		Proxy: handshake.Proxy, TLSClientConfig: handshake.TLS, Subprotocols: d.protocols,
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
		NetDialContext: wired(handshake.Dial, func(conn net.Conn) {
			raw = conn
			// The dialer looks at ctx while it connects, and not while it waits for the answer.
			release = context.AfterFunc(d.ctx, func() { _ = conn.Close() })
		}),
	}
	d.foreign, d.cut = false, false
	ws, response, err := dialer.DialContext(d.ctx, handshake.URL.String(), handshake.Header)
	if err == nil && !slices.Contains(d.protocols, ws.Subprotocol()) {
		_ = ws.Close()
		d.foreign = true
		err = fmt.Errorf("the server speaks none of the protocols %s, but %q", strings.Join(d.protocols, ", "), ws.Subprotocol())
	}
	if err != nil {
		release()
		d.judge(response, err)
		return response, ended(d.ctx, err)
	}
	d.opened = newSocket(ws, raw, release)
	return response, nil
}

// judge looks who has refused the handshake.
func (d *dialing) judge(response *http.Response, err error) {
	if response == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		return
	}
	body, _ := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) >= shownBody && strings.Contains(response.Header.Get("Content-Type"), "json") {
		d.cut = true
		return
	}
	var status struct{ Kind string }
	d.foreign = json.Unmarshal(body, &status) != nil || status.Kind != "Status"
}

// askAgain makes the request that was refused without asking for a stream, which has no effect, to have the refusal in
// full.
func (d *dialing) askAgain(conn *transport.Conn, refused error) error {
	response, err := conn.Do(d.ctx, d.request)
	if err == nil {
		_ = response.Body.Close()
		return refused
	}
	var first, second apierrors.APIStatus
	if errors.As(refused, &first) && errors.As(err, &second) && first.Status().Code == second.Status().Code {
		return err
	}
	return refused
}
