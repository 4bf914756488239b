package podstream

import (
	"bytes"
	"crypto/fips140"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/anykind/anykind/apitest/streams"
)

// Channels of a session's messages: the first byte of each message.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelError  = 3
	channelResize = 4
	channelClose  = 255
)

const (
	protocolV5 = "v5.channel.k8s.io"
	protocolV4 = "v4.channel.k8s.io"

	maxMessage   = 32 << 10
	closeTimeout = 5 * time.Second
)

// socket is a WebSocket with messages for channels.
type socket struct {
	ws      *websocket.Conn
	mu      sync.Mutex // of writes
	stdin   *io.PipeWriter
	resize  *io.PipeWriter
	gone    chan struct{}
	hasHalf bool // half-close of stdin, since v5
}

// upgradeWebSocket opens the streams, or responds with an error and returns nil.
func upgradeWebSocket(w http.ResponseWriter, req *http.Request, requested requestedStreams) *channels {
	ws := openWebSocket(w, req, protocolV5, protocolV4)
	if ws == nil {
		return nil
	}
	stdinReader, stdinWriter := io.Pipe()
	resizeReader, resizeWriter := io.Pipe()
	s := &socket{ws: ws, stdin: stdinWriter, resize: resizeWriter, gone: make(chan struct{}), hasHalf: ws.Subprotocol() == protocolV5}
	c := &channels{
		stdout: orDiscard(&channelWriter{s, channelStdout}, requested.stdout), stderr: orDiscard(&channelWriter{s, channelStderr}, requested.stderr),
		resizes: make(chan streams.TerminalSize, maxResizes), gone: s.gone,
	}
	if requested.stdin {
		c.stdin = stdinReader
	}
	var goroutines sync.WaitGroup
	goroutines.Go(s.read)
	goroutines.Go(func() { readResizes(resizeReader, c.resizes) })
	stop := closeWith(req, ws)
	c.end = func(status []byte) {
		defer stop()
		_, _ = (&channelWriter{s, channelError}).Write(status)
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(closeTimeout))
		_ = stdinReader.Close()
		_ = ws.SetReadDeadline(time.Now().Add(closeTimeout)) // the client closes, too
		goroutines.Wait()
		_ = ws.Close()
	}
	return c
}

// openWebSocket opens a WebSocket with a subprotocol, or responds with an error and returns nil.
func openWebSocket(w http.ResponseWriter, req *http.Request, protocols ...string) (ws *websocket.Conn) {
	if !offers(req, protocols) {
		http.Error(w, "unable to upgrade: apitest supports "+strings.Join(protocols, " and "), http.StatusForbidden)
		return nil
	}
	upgrader := websocket.Upgrader{Subprotocols: protocols, CheckOrigin: func(*http.Request) bool { return true }}
	fips140.WithoutEnforcement(func() { // the handshake uses SHA-1, not for security
		ws, _ = upgrader.Upgrade(w, req, nil) // Upgrade responds to errors
	})
	return ws
}

// offers reports whether the client offers any of the subprotocols.
func offers(req *http.Request, protocols []string) bool {
	for _, offered := range websocket.Subprotocols(req) {
		for _, protocol := range protocols {
			if offered == protocol {
				return true
			}
		}
	}
	return false
}

// closeWith closes conn when the request's context ends, until stop is called.
func closeWith(req *http.Request, conn io.Closer) (stop func()) {
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-req.Context().Done():
			_ = conn.Close()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-finished
	}
}

// read dispatches messages to stdin and resizes until the connection ends.
func (s *socket) read() {
	defer close(s.gone)
	defer s.resize.Close() //nolint:errcheck // A pipe's Close returns nil.
	defer s.stdin.Close()  //nolint:errcheck // A pipe's Close returns nil.
	for {
		_, message, err := s.ws.ReadMessage()
		if err != nil {
			return
		}
		if len(message) == 0 {
			continue
		}
		switch message[0] {
		case channelStdin:
			_, _ = io.Copy(s.stdin, bytes.NewReader(message[1:])) // fails when the session has ended
		case channelResize:
			_, _ = s.resize.Write(message[1:])
		case channelClose:
			if s.hasHalf && len(message) > 1 && message[1] == channelStdin {
				_ = s.stdin.Close()
			}
		}
	}
}

// channelWriter writes messages of a channel.
type channelWriter struct {
	socket  *socket
	channel byte
}

// Write implements io.Writer.
func (w *channelWriter) Write(p []byte) (int, error) {
	w.socket.mu.Lock()
	defer w.socket.mu.Unlock()
	written := 0
	for first := true; first || written < len(p); first = false {
		part := p[written:min(len(p), written+maxMessage)]
		if err := w.socket.ws.WriteMessage(websocket.BinaryMessage, append([]byte{w.channel}, part...)); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

// messageConn is a net.Conn over the binary messages of a WebSocket.
type messageConn struct {
	*websocket.Conn
	reader io.Reader
	mu     sync.Mutex
}

// Read implements net.Conn.
func (c *messageConn) Read(p []byte) (int, error) {
	for {
		if c.reader == nil {
			_, reader, err := c.NextReader()
			if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived) {
				return 0, io.EOF
			}
			if err != nil {
				return 0, err
			}
			c.reader = reader
		}
		n, err := c.reader.Read(p)
		if err != nil {
			c.reader = nil
		}
		if n > 0 || err != nil && err != io.EOF { // a reader's EOF is never wrapped
			return n, nil
		}
	}
}

// Write implements net.Conn.
func (c *messageConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetDeadline implements net.Conn.
func (c *messageConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

var _ net.Conn = (*messageConn)(nil)
