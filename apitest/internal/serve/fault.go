package serve

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// Break is the way a connection fails.
type Break string

// The ways a connection fails. The zero value is none.
const (
	Drop  Break = "drop"  // the connection is closed; with HTTP/2 the stream is reset
	Stall Break = "stall" // nothing more is sent, and the connection stays open until the client closes it
)

// Fault makes a request fail. Its parts apply in the order of the fields.
type Fault struct {
	// Latency delays the request before anything else.
	Latency time.Duration
	// Err is the response instead of the result. The request is not executed.
	Err error
	// Break fails the connection. If AfterBytes is nil, the request is not executed. Otherwise it is executed, and the connection
	// fails after so many bytes of the response body.
	Break      Break
	AfterBytes *int
	// EventDelay delays each batch of events of a watch.
	EventDelay time.Duration
}

// before applies the fault before the request is executed. It reports whether the request is done.
func (f *Fault) before(c *call) bool {
	if f == nil {
		return false
	}
	if !sleep(c, f.Latency) {
		return true
	}
	if f.Err != nil {
		writeError(c.w, c.req, f.Err)
		return true
	}
	if f.Break == "" {
		return false
	}
	if f.AfterBytes == nil {
		fail(c.req, f.Break)
		return true
	}
	c.w = &breakingWriter{ResponseWriter: c.w, req: c.req, mode: f.Break, left: *f.AfterBytes}
	return false
}

// lateEvents delays a batch of a watch. It returns false if the client has disconnected.
func (f *Fault) lateEvents(c *call, events int) bool {
	return f == nil || events == 0 || sleep(c, f.EventDelay)
}

func sleep(c *call, duration time.Duration) bool {
	if duration <= 0 {
		return true
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.req.Context().Done():
		return false
	}
}

// fail panics with http.ErrAbortHandler. net/http then closes the connection or resets the stream.
func fail(req *http.Request, mode Break) {
	if mode == Stall {
		<-req.Context().Done()
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // net/http recovers it
}

// breakingWriter sends the first bytes of a body and then fails.
type breakingWriter struct {
	http.ResponseWriter
	req  *http.Request
	mode Break
	left int
}

// WriteHeader implements http.ResponseWriter.
func (b *breakingWriter) WriteHeader(code int) {
	if b.left <= 0 {
		fail(b.req, b.mode)
	}
	b.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (b *breakingWriter) Write(data []byte) (int, error) {
	if len(data) < b.left {
		b.left -= len(data)
		return b.ResponseWriter.Write(data)
	}
	_, _ = b.ResponseWriter.Write(data[:b.left])
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	fail(b.req, b.mode)
	return 0, nil
}

// Hijack implements http.Hijacker. An upgraded connection is not broken.
func (b *breakingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(b.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (b *breakingWriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }
