package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// LogOptions say which part of which logs to read. See
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod.
type LogOptions struct {
	// Container is whose log is read. Without it [Logs] reads that of the container that [ExecOptions] describes, and
	// [LogLines] those of all containers, init containers among them.
	Container string
	// Selector is a label selector, such as app=web,tier!=cache: [LogLines] reads the logs of the pods that it
	// matches, all where it is "".
	Selector string
	// Name is the pod, service or workload whose pods' logs [LogLines] reads. It is required where the handle is not
	// one on pods.
	Name string
	// Follow goes on with what is written from now on.
	Follow bool
	// Previous reads the log of the container before its last restart. It leaves nothing to follow.
	Previous bool
	// SinceSeconds and SinceTime leave out what is older; set one of them. SinceTime is rounded down to a second.
	SinceSeconds int64
	SinceTime    time.Time
	// TailLines leaves out all but the last lines of what is there already.
	TailLines *int64
	// LimitBytes ends each log after so many bytes, roughly; 0 means no limit.
	LimitBytes int64
	// Timestamps puts the time before each line, in RFC 3339 with nanoseconds. A [Line] always has it.
	Timestamps bool
	// Stream is "Stdout" or "Stderr" to read one of the two alone, which servers do where the feature
	// PodLogsQuerySplitStreams is enabled, and refuse elsewhere.
	Stream string
	// InsecureSkipTLSVerifyBackend lets the API server take the log of a node whose certificate it cannot check.
	InsecureSkipTLSVerifyBackend bool
	// OnError is called by [LogLines] with the error of each container whose log cannot be read, or not to its end,
	// while the others are read on; one call at a time. Without it such errors are part of the one that comes last.
	OnError func(from Line, err error)
}

// query is the request's v1.PodLogOptions.
func (o *LogOptions) query(container string) url.Values {
	query := url.Values{}
	set := func(name, value string, wanted bool) {
		if wanted {
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

// Logs reads a container's log; nil options mean all that is there. Of a service or a workload, such as a deployment, it
// reads that of one of the pods, a ready one if there is any. The caller closes the reader, which may be done while it is
// being read, and reads it from one goroutine.
//
// With Follow the reader gives every line once, in whole lines as long as they are shorter than 64 KiB: where the
// connection breaks, or the log is rotated, it connects again, for as long as it takes, and leaves out what it has
// given already. It ends with io.EOF when the container has ended, or been restarted, and all is read; where what was
// written while the connection was broken is lost, with an error that wraps io.ErrUnexpectedEOF. For all that the user
// needs the RBAC verb get on pods besides get on pods/log; without it the end of the connection is that of the log. The
// call itself does not wait for the first line, so that a refusal of the log may come from the reader. Of a log whose
// times jump back while the connection is broken, lines may be lost or come twice.
func Logs(ctx context.Context, target Target, name string, opts *LogOptions) (io.ReadCloser, error) {
	if opts == nil {
		opts = &LogOptions{}
	}
	reader, err := openLog(ctx, target, name, opts)
	return reader, onObject("read the log of", target, name, err)
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
		return reader, pod.of(name, err)
	}
	var body io.ReadCloser
	err = inContainer(ctx, conn, pod.path, opts.Container, func(container string) error {
		response, err := conn.Do(ctx, &transport.Request{Path: pod.path + "/log", Query: opts.query(container)}) //nolint:bodyclose // the caller does
		if err == nil {
			body = &logBody{ctx, response.Body}
		}
		return err
	})
	return body, pod.of(name, err)
}

// logBody is an answer that is the log.
type logBody struct {
	ctx context.Context
	io.ReadCloser
}

// Read implements io.Reader. A connection that breaks is an io.ErrUnexpectedEOF, however it broke.
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
