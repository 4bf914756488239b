package stream

import (
	"context"
	"errors"
	"net/url"

	"github.com/anykind/anykind/transport"
)

// open begins a session with exec or attach.
func open(ctx context.Context, pods Target, pod, sub string, opts *ExecOptions) (*session, error) {
	path, err := subresource(pods, pod, sub)
	if err != nil {
		return nil, err
	}
	var opened *socket
	err = inContainer(ctx, pods, pod, opts.Container, func(container string) (err error) {
		opened, err = dialChannels(ctx, pods.Conn(), path, opts.query(container))
		return err
	})
	if err != nil {
		return nil, err
	}
	begun := &session{
		ctx: ctx, socket: opened, stdin: opts.Stdin,
		output: output{stdout: opts.Stdout, stderr: opts.Stderr},
	}
	if opts.TTY {
		begun.resize = opts.Resize
	}
	return begun, nil
}

// dialChannels offers both protocols at once, and v4 alone to what does not look past the first.
func dialChannels(ctx context.Context, conn *transport.Conn, path string, query url.Values) (*socket, error) {
	opened, err := dial(ctx, conn, path, query, protocolV5, protocolV4)
	var foreign *foreignError
	if !errors.As(err, &foreign) {
		return opened, err
	}
	opened, again := dial(ctx, conn, path, query, protocolV4)
	if errors.As(again, &foreign) {
		return nil, err // the first says more
	}
	return opened, again
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
