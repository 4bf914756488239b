package podstream

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/spdystream"

	"github.com/anykind/anykind/apitest/streams"
)

const (
	protocolPortForward = "portforward.k8s.io"
	protocolTunnel      = "SPDY/3.1+" + protocolPortForward
)

// portForward serves connections in a SPDY session, which may be tunneled in a WebSocket.
func (h *Handler) portForward(w http.ResponseWriter, req *http.Request, pod streams.Pod) error {
	if h.Handlers.PortForward == nil {
		return notSet("PortForward")
	}
	var raw net.Conn
	switch protocol := strings.ToLower(req.Header.Get("Upgrade")); {
	case protocol == "websocket":
		ws := openWebSocket(w, req, protocolTunnel)
		if ws == nil {
			return nil
		}
		raw = &messageConn{Conn: ws}
	case strings.HasPrefix(protocol, "spdy"):
		conn, err := hijackSPDY(w, req, protocolPortForward)
		if err != nil {
			return err
		}
		raw = conn
	default:
		return errNoUpgrade()
	}
	conn, err := spdystream.NewConnection(raw, true)
	if err != nil {
		return raw.Close()
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	stop := closeWith(req, conn)
	defer stop()
	f := &forwarder{handler: h, pod: pod, ctx: ctx, pairs: map[string]*streamPair{}}
	conn.Serve(f.add)
	cancel()
	f.closeAll()
	f.connections.Wait()
	_ = conn.Close()
	_ = conn.Wait(closeTimeout)
	_ = raw.Close()
	return nil
}

// forwarder pairs the error and data streams of connections and serves them.
type forwarder struct {
	handler     *Handler
	pod         streams.Pod
	ctx         context.Context //nolint:containedctx // the request's; the forwarder lives as long
	mu          sync.Mutex
	pairs       map[string]*streamPair
	connections sync.WaitGroup
}

type streamPair struct{ data, err *spdystream.Stream }

// add accepts a stream created by the client.
func (f *forwarder) add(stream *spdystream.Stream) {
	headers := stream.Headers()
	id := headers.Get("requestID")
	port, err := strconv.Atoi(headers.Get("port"))
	if err != nil || port < 1 || port > 65535 {
		_ = stream.Refuse()
		return
	}
	_ = stream.SendReply(http.Header{}, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	pair := f.pairs[id]
	if pair == nil {
		pair = &streamPair{}
		f.pairs[id] = pair
	}
	switch strings.ToLower(headers.Get(typeHeader)) {
	case "data":
		pair.data = stream
	case "error":
		pair.err = stream
	}
	if pair.data != nil && pair.err != nil {
		f.connections.Go(func() { f.serve(id, pair, port) })
	}
}

// serve serves a connection and sends its error.
func (f *forwarder) serve(id string, pair *streamPair, port int) {
	err := f.handler.Handlers.PortForward(f.ctx, f.pod, port, pair.data)
	if err != nil {
		_, _ = fmt.Fprintf(pair.err, "error forwarding port %d to pod %s, uid : %v", port, f.pod.Name, err)
	}
	_ = pair.err.Close()
	_ = pair.data.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pairs, id)
}

// closeAll ends the reads of all connections.
func (f *forwarder) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pair := range f.pairs {
		for _, stream := range []*spdystream.Stream{pair.data, pair.err} {
			if stream != nil {
				_ = stream.Reset()
			}
		}
	}
}
