package podstream

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/streams"
)

const (
	protocolHeader = "X-Stream-Protocol-Version"
	typeHeader     = "streamType"
	streamTimeout  = 30 * time.Second
)

// hijackSPDY responds to the upgrade and returns the connection. It chooses the first protocol offered by the client.
func hijackSPDY(w http.ResponseWriter, req *http.Request, protocols ...string) (net.Conn, error) {
	chosen := ""
	for _, offered := range strings.Split(strings.Join(req.Header.Values(protocolHeader), ","), ",") {
		for _, protocol := range protocols {
			if strings.TrimSpace(offered) == protocol && chosen == "" {
				chosen = protocol
			}
		}
	}
	if chosen == "" {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fmt.Errorf("apitest supports %s, the client requested %s", protocols, req.Header.Values(protocolHeader)))
	}
	hijacker := http.NewResponseController(w)
	w.Header().Set(protocolHeader, chosen)
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "SPDY/3.1")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := buffered.Flush(); err != nil {
		_ = conn.Close()
		return nil, apierrors.NewInternalError(err)
	}
	return &bufferedConn{Conn: conn, reader: buffered.Reader}, nil
}

// bufferedConn first reads the data buffered by the HTTP server.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// upgradeSPDY waits for the client to create the requested streams.
func upgradeSPDY(w http.ResponseWriter, req *http.Request, requested requestedStreams) (*channels, error) {
	raw, err := hijackSPDY(w, req, protocolV4)
	if err != nil {
		return nil, err
	}
	conn, err := spdystream.NewConnection(raw, true)
	if err != nil {
		_ = raw.Close()
		return nil, nil //nolint:nilnil,nilerr // the connection is hijacked: no response can be sent
	}
	created := make(chan *spdystream.Stream)
	gone := make(chan struct{})
	var goroutines sync.WaitGroup
	goroutines.Go(func() {
		conn.Serve(func(stream *spdystream.Stream) {
			_ = stream.SendReply(http.Header{}, false)
			select {
			case created <- stream:
			case <-conn.CloseChan():
			}
		})
	})
	go func() {
		<-conn.CloseChan()
		close(gone)
	}()
	stop := closeWith(req, conn)
	byType := awaitStreams(created, requested.count())
	if byType == nil {
		_ = conn.Close()
		stop()
		return nil, nil //nolint:nilnil // The client has not created its streams.
	}
	c := &channels{
		stdout: orDiscard(byType["stdout"], requested.stdout), stderr: orDiscard(byType["stderr"], requested.stderr),
		resizes: make(chan streams.TerminalSize, maxResizes), gone: gone,
	}
	if requested.stdin {
		c.stdin = byType["stdin"]
	}
	if requested.tty {
		goroutines.Go(func() { readResizes(byType["resize"], c.resizes) })
	}
	c.end = func(status []byte) {
		_, _ = byType["error"].Write(status)
		for _, stream := range byType {
			_ = stream.Close()
		}
		select {
		case <-conn.CloseChan(): // the client closes after reading the Status
		case <-time.After(closeTimeout):
		}
		_ = conn.Close()
		stop()
		for _, stream := range byType {
			_ = stream.Reset()
		}
		goroutines.Wait()
		_ = conn.Wait(closeTimeout) // otherwise a Close error, after the client closed first, keeps a goroutine for a second
	}
	return c, nil
}

func (s requestedStreams) count() int {
	count := 1 // the error stream
	for _, requested := range []bool{s.stdin, s.stdout, s.stderr, s.tty} {
		if requested {
			count++
		}
	}
	return count
}

// awaitStreams returns the streams by type, or nil after a timeout.
func awaitStreams(created <-chan *spdystream.Stream, count int) map[string]*spdystream.Stream {
	byType := map[string]*spdystream.Stream{}
	timeout := time.After(streamTimeout)
	for len(byType) < count {
		select {
		case stream := <-created:
			byType[strings.ToLower(stream.Headers().Get(typeHeader))] = stream
		case <-timeout:
			return nil
		}
	}
	return byType
}
