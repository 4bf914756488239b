package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// LogOptions selects logs and parts of them. See
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod.
type LogOptions struct {
	// Container selects the container. By default [Logs] reads the default container of [ExecOptions], and [LogLines] all
	// containers including init containers.
	Container string
	// Selector is a label selector, such as app=web,tier!=cache, for the pods of [LogLines]; "" selects all.
	Selector string
	// Name is the pod, service or workload of [LogLines]. It is required unless the handle is on pods.
	Name string
	// Follow continues with new lines.
	Follow bool
	// Previous reads the log of the container before its last restart. There is nothing to follow then.
	Previous bool
	// SinceSeconds and SinceTime omit older lines; set at most one of them. SinceTime is rounded down to a second.
	SinceSeconds int64
	SinceTime    time.Time
	// TailLines limits the existing lines to the last TailLines lines.
	TailLines *int64
	// LimitBytes ends each log after about this many bytes; 0 means no limit.
	LimitBytes int64
	// Timestamps adds the time before each line, in RFC 3339 with nanoseconds. A [LogLine] always has its Time.
	Timestamps bool
	// Stream is "Stdout" or "Stderr" to read a single stream. Servers reject it unless their feature gate
	// PodLogsQuerySplitStreams is on.
	Stream string
	// InsecureSkipTLSVerifyBackend lets the API server read from a node with an unverifiable certificate.
	InsecureSkipTLSVerifyBackend bool

	// Filter reports whether [LogLines] reads the log of a container; nil accepts all. It is called for each container that has
	// begun to run. With Follow it is called again after each restart, and after each change of the pod while it rejects a
	// container. Calls are sequential, but with Follow from a different goroutine. It must not wait for the loop.
	Filter func(LogSource) bool
	// OnStart is called when [LogLines] begins to read a log, before its first line. OnEnd is called after its last line, with
	// the reason: "Complete" if the log was read to its end, "PodRemoved" if the pod was deleted or Selector no longer matches
	// it, or "Failed" after OnError. OnEnd is not called for active logs when the loop ends. OnStart, OnEnd and OnError are
	// called between lines, in the goroutine of the loop.
	OnStart func(LogSource)
	OnEnd   func(source LogSource, reason string)
	// OnError is called by [LogLines] with the error of each unreadable or incomplete log, while the remaining logs are read. It
	// is a rejection by the server, such as 403, or wraps io.ErrUnexpectedEOF if lines are lost. Without OnError such errors are
	// part of the final error. Transient errors are retried instead: with Follow, as long as the container runs. A container that
	// does not run yet and a deleted pod are no errors.
	OnError func(source LogSource, err error)
}

// query returns the parameters of a v1.PodLogOptions.
func (o *LogOptions) query(container string) url.Values {
	query := url.Values{}
	set := func(name, value string, condition bool) {
		if condition {
			query.Set(name, value)
		}
	}
	set("container", container, container != "")
	set("follow", "true", o.Follow)
	set("previous", "true", o.Previous)
	set("sinceSeconds", strconv.FormatInt(o.SinceSeconds, 10), o.SinceSeconds != 0)
	set("sinceTime", o.SinceTime.UTC().Format(time.RFC3339), !o.SinceTime.IsZero())
	if o.TailLines != nil {
		query.Set("tailLines", strconv.FormatInt(*o.TailLines, 10))
	}
	set("limitBytes", strconv.FormatInt(o.LimitBytes, 10), o.LimitBytes != 0)
	set("timestamps", "true", o.Timestamps)
	set("stream", o.Stream, o.Stream != "")
	set("insecureSkipTLSVerifyBackend", "true", o.InsecureSkipTLSVerifyBackend)
	return query
}

// Logs reads a container's log; nil options mean all existing lines. For a service or workload, such as a deployment, it reads
// from a pod of it, preferably a ready pod. The caller closes the reader. The reader is not safe for concurrent use, but may be
// closed during a Read.
//
// With Follow the reader returns every line once, and whole if it is shorter than 64 KiB. When the connection breaks or the log
// is rotated, it reconnects as often as necessary and skips lines already returned. It returns io.EOF after the container has
// ended or restarted and everything is read. If lines from the time of a broken connection are lost, the error wraps
// io.ErrUnexpectedEOF. This needs the RBAC verb get on pods besides get on pods/log; without it the log ends with the connection.
// Logs does not wait for the first line, so the reader may return the server's rejection. If the times in a log jump back while
// the connection is broken, lines may be lost or repeated.
func Logs(ctx context.Context, target Target, name string, opts *LogOptions) (io.ReadCloser, error) {
	if opts == nil {
		opts = &LogOptions{}
	}
	reader, err := openLog(ctx, target, name, opts)
	return reader, operationError("read the log of", target, name, err)
}

func openLog(ctx context.Context, target Target, name string, opts *LogOptions) (io.ReadCloser, error) {
	if opts.Selector != "" || opts.Name != "" {
		return nil, errors.New("a Selector or a Name chooses among several: use LogLines")
	}
	pod, err := resolvePod(ctx, target, name, mayHaveLog)
	if err != nil {
		return nil, err
	}
	conn := target.Conn()
	if opts.Follow && !opts.Previous {
		reader, err := followLog(ctx, conn, pod.path, opts)
		return reader, pod.wrap(name, err)
	}
	response, err := openContainer(ctx, conn, pod.path, opts.Container, func(container string) (*http.Response, error) { //nolint:bodyclose // the caller does
		return conn.Do(ctx, &transport.Request{Path: pod.path + "/log", Query: opts.query(container)})
	})
	if err != nil {
		return nil, pod.wrap(name, err)
	}
	return &logBody{ctx, response.Body}, nil
}

// logBody is the body of a response with the log.
type logBody struct {
	ctx context.Context
	io.ReadCloser
}

// Read implements io.Reader. A broken connection is always an io.ErrUnexpectedEOF.
func (b *logBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || err == io.EOF: // itself: the log's end
		return n, err
	case b.ctx.Err() != nil:
		return n, retry.WithContextError(b.ctx, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, err
	default:
		return n, fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
}

// followReader returns the lines of a followed log as bytes.
type followReader struct {
	log       *containerLog
	cancel    context.CancelFunc
	connected chan struct{} // closed after the first attempt to connect, which sets err
	text      []byte        // rest of the last piece
	err       error
}

// followLog identifies the container and begins to connect. It does not wait for the connection: servers respond together with
// the first line, possibly late.
func followLog(ctx context.Context, conn *transport.Conn, podPath string, opts *LogOptions) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	log := newContainerLog(ctx, conn, podPath, opts)
	if err := log.identify(); err != nil {
		cancel()
		return nil, err
	}
	reader := &followReader{log: log, cancel: cancel, connected: make(chan struct{})}
	go func() {
		defer close(reader.connected)
		if reader.err = log.connect(); reader.err == nil {
			log.identifyAgain()
		}
	}()
	return reader, nil
}

// Read waits for a line and returns at most a line.
func (r *followReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	<-r.connected
	for len(r.text) == 0 && r.err == nil {
		var next logPiece
		next, r.err = r.log.next()
		r.text = next.text
	}
	if r.err != nil {
		r.log.disconnect()
		r.cancel()
		return 0, r.err
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// Close ends the connection. A waiting Read returns an error.
func (r *followReader) Close() error {
	r.cancel()
	return nil
}
