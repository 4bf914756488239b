package stream

import (
	"context"
	"io"
)

// ExecOptions say what to run and where its streams come from and go to.
type ExecOptions struct {
	// Command is the program and its arguments; no shell reads it.
	Command []string
	// Container is where it runs. Without it, that is the pod's only container, the one that its annotation
	// kubectl.kubernetes.io/default-container names, or its first.
	Container string
	// Stdin is the command's input; nil means none. It is read ahead of the command, by a goroutine that is left
	// behind in a Read which does not return. An error of it ends the command. A server before Kubernetes 1.30 cannot
	// tell the command of its end, which then is an error.
	//
	// A command that leaves its input unread for a minute, with every buffer on the way full, keeps the server from
	// answering, and so looks as if the server had vanished.
	Stdin io.Reader
	// Stdout and Stderr take what the command writes; nil means that it is not sent. One goroutine writes to both. A
	// slow one makes the command wait, and an error of one ends the command.
	Stdout, Stderr io.Writer
	// TTY gives the command a terminal. What it writes then comes by Stdout alone.
	TTY bool
	// Resize tells the terminal's size, at the start and whenever it changes. It may be closed.
	Resize <-chan Size
}

// Size is that of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// Exec runs a command in a pod's container and returns when it has ended. Of a service or a workload, such as a
// deployment, it takes one of the pods, a ready one if there is any. It returns nil where its exit code is 0, a *[ExitError]
// where it is another, a *apierrors.StatusError where the server refused or could not run it. Where the connection ends
// before the server has told how the command ended, the error wraps io.ErrUnexpectedEOF, and what was read may not be
// all; a server that has vanished is noticed after 61 seconds. A request whose command may have begun to run is not
// repeated.
//
// The end of ctx ends the command's input and the connection. Whether that also ends a command which heeds neither is
// the container runtime's choice.
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
