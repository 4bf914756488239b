package stream

import (
	"context"
	"hash/maphash"
	"io"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logReader gives a log's lines as bytes.
type logReader struct {
	stream *logStream
	cancel context.CancelFunc
	stamps bool
	head   []byte
	text   []byte
	err    error
}

// followLog finds out whose log it is and begins to connect. It does not wait for that: servers answer with the first
// line, which may be long in coming.
func followLog(ctx context.Context, conn *transport.Conn, pod string, opts *LogOptions) (io.ReadCloser, error) {
	following, cancel := context.WithCancel(ctx)
	stream := newLogStream(following, conn, pod, opts)
	if err := stream.identify(); err != nil {
		cancel()
		return nil, err
	}
	begun, first := make(chan opening, 1), stream.request()
	stream.opening, stream.verify = begun, true
	go func() { begun <- openWith(following, conn, first) }() // hangUp closes it, or the end of following
	return &logReader{stream: stream, cancel: cancel, stamps: opts.Timestamps}, nil
}

func newLogStream(ctx context.Context, conn *transport.Conn, pod string, opts *LogOptions) *logStream {
	return &logStream{
		ctx: ctx, conn: conn, pod: pod, opts: *opts, limited: opts.LimitBytes > 0, left: opts.LimitBytes,
		recent: recentLines{seed: maphash.MakeSeed()},
	}
}

// identify finds out which container's log it is, and which run of it.
func (s *logStream) identify() error {
	var found podParts
	err := get(s.ctx, s.conn, s.pod, &found)
	if apierrors.IsForbidden(err) {
		return nil // may read logs, but not pods: the server chooses the container
	}
	if err == nil && s.opts.Container == "" {
		s.opts.Container, err = found.defaultContainer()
	}
	s.first, _ = found.instance(s.opts.Container)
	return err
}

// identifyAgain looks once more after the log was opened: the container may have been restarted between.
func (s *logStream) identifyAgain() {
	var found podParts
	if s.first.uid == "" || get(s.ctx, s.conn, s.pod, &found) != nil || found.Metadata.UID != s.first.uid {
		return
	}
	if now, _ := found.instance(s.opts.Container); now.restarts > s.first.restarts {
		s.first = now
	}
}

// Read gives what is there, at most a line, and waits for one.
func (r *logReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.head) == 0 && len(r.text) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var next piece
		if next, r.err = r.stream.next(); r.err != nil {
			r.stream.hangUp()
			r.cancel()
			continue
		}
		r.text = next.text
		if r.stamps {
			r.head = next.head
		}
	}
	n := copy(p, r.head)
	r.head = r.head[n:]
	m := copy(p[n:], r.text)
	r.text = r.text[m:]
	return n + m, nil
}

// Close ends the connection. A Read that waits returns an error.
func (r *logReader) Close() error {
	r.cancel()
	return nil
}
