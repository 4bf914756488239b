package stream

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// open begins a session with exec or attach.
func open(ctx context.Context, target Target, name, sub string, opts *ExecOptions) (*session, error) {
	pod, err := resolvePod(ctx, target, name, isRunning)
	if err != nil {
		return nil, err
	}
	conn := target.Conn()
	var opened *socket
	err = inContainer(ctx, conn, pod.path, opts.Container, func(container string) (err error) {
		opened, err = dialChannels(ctx, conn, pod.path+"/"+sub, opts.query(container))
		return err
	})
	if err != nil {
		return nil, pod.of(name, err)
	}
	begun := &session{
		ctx: ctx, pod: pod, socket: opened, stdin: opts.Stdin,
		output: output{stdout: opts.Stdout, stderr: opts.Stderr},
	}
	if opts.TTY {
		begun.resize = opts.Resize
	}
	return begun, nil
}

// dialChannels offers both protocols at once, and v4 alone to what refuses the request because it does not look past the
// first. After any other answer, such as a gateway's 504 or a stream without a protocol, the command may run: the request
// is not repeated.
func dialChannels(ctx context.Context, conn *transport.Conn, path string, query url.Values) (*socket, error) {
	opened, err := dial(ctx, conn, path, query, protocolV5, protocolV4)
	var foreign *foreignError
	if !errors.As(err, &foreign) || !hadNoEffect(err) {
		return opened, err
	}
	opened, again := dial(ctx, conn, path, query, protocolV4)
	if errors.As(again, &foreign) {
		return nil, err // the first says more
	}
	return opened, again
}

// hadNoEffect reports whether a handshake was answered with a code from 400 to 499.
func hadNoEffect(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) &&
		status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}

// query is the request's part of a v1.PodExecOptions or v1.PodAttachOptions.
func (o *ExecOptions) query(container string) url.Values {
	query := url.Values{}
	for name, wanted := range map[string]bool{
		"stdin": o.Stdin != nil,
		// The server insists on one stream at least.
		"stdout": o.Stdout != nil || (o.Stdin == nil && (o.Stderr == nil || o.TTY)),
		"stderr": o.Stderr != nil && !o.TTY,
		"tty":    o.TTY,
	} {
		if wanted {
			query.Set(name, "true")
		}
	}
	if container != "" {
		query.Set("container", container)
	}
	if len(o.Command) > 0 {
		query["command"] = o.Command
	}
	return query
}
