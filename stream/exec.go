package stream

import (
	"context"
	"io"
	"net/url"
)

// ExecOptions configures a command and its streams.
type ExecOptions struct {
	// Command is the program and its arguments; no shell interprets it.
	Command []string
	// Container is the container to run in. The default is the pod's only container, the container named by its annotation
	// kubectl.kubernetes.io/default-container, or its first container.
	Container string
	// Stdin is the command's input; nil means none. A goroutine reads it ahead of the command, and may remain in a blocking Read
	// after the end. An error of Stdin ends the command.
	//
	// If the command leaves its input unread for a minute and all buffers are full, the server cannot respond to pings. The command
	// then fails with the error of an unresponsive server.
	Stdin io.Reader
	// Stdout and Stderr receive the command's output; nil means that it is not sent. A single goroutine writes to both. A slow
	// writer makes the command wait, and an error of a writer ends the command.
	Stdout, Stderr io.Writer
	// TTY allocates a terminal. All output then arrives at Stdout.
	TTY bool
	// Resize delivers the terminal's size, at the start and after every change. It may be closed.
	Resize <-chan TerminalSize
}

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct{ Width, Height uint16 }

// Exec runs a command in a container of a pod and returns after it has ended. For a service or workload, such as a deployment, it
// runs in a pod of it, preferably a ready pod. It returns nil for exit code 0, an *[ExitError] for any other code, and a
// *apierrors.StatusError if the server rejected the command or could not run it. If the connection ends before the exit status
// has arrived, the error wraps io.ErrUnexpectedEOF and output may be missing; a vanished server is detected after 61 seconds. The
// request is never repeated, because its command may have begun to run.
//
// The end of ctx closes the command's input and the connection. If a command ignores both, it depends on the container runtime
// whether the command ends.
//
// The user needs the RBAC verbs get and, since Kubernetes 1.35, create on pods/exec. See
// https://kubernetes.io/docs/tasks/debug/debug-application/get-shell-running-container.
func Exec(ctx context.Context, target Target, name string, opts *ExecOptions) error {
	cmd := Command(ctx, target, name)
	if opts != nil {
		cmd.ExecOptions = *opts
	}
	return cmd.Run()
}

// query returns the parameters of a v1.PodExecOptions or v1.PodAttachOptions.
func (o *ExecOptions) query(container string) url.Values {
	query := url.Values{"command": o.Command}
	for name, enabled := range map[string]bool{
		"stdin": o.Stdin != nil,
		// The server requires at least one stream.
		"stdout": o.Stdout != nil || (o.Stdin == nil && (o.Stderr == nil || o.TTY)),
		"stderr": o.Stderr != nil && !o.TTY,
		"tty":    o.TTY,
	} {
		if enabled {
			query.Set(name, "true")
		}
	}
	if container != "" {
		query.Set("container", container)
	}
	return query
}

// AttachOptions configures the streams of [Attach]. The fields are as in [ExecOptions].
type AttachOptions struct {
	Container      string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan TerminalSize
}

// Attach connects to the streams of a container's main process, from now until the process or ctx ends. Stdin and TTY need stdin
// and tty in the container's spec. Nil options attach to standard output and discard it: Attach then waits for the process. As
// for [Exec], the target may be a service or workload. Errors are as for Exec.
func Attach(ctx context.Context, target Target, name string, opts *AttachOptions) error {
	if opts == nil {
		opts = &AttachOptions{}
	}
	attached, err := openSession(ctx, target, name, "attach", ExecOptions{
		Container: opts.Container, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, TTY: opts.TTY, Resize: opts.Resize,
	})
	if err == nil {
		err = attached.run()
	}
	return operationError("attach to", target, name, err)
}
