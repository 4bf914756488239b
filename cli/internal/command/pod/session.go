package pod

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/internal/terminal"
	"github.com/anykind/anykind/stream"
)

// streamTimeout is the default of --pod-running-timeout for exec, attach and port-forward.
const streamTimeout = time.Minute

// session has the options and streams of exec and attach.
type session struct {
	*command.State

	container         string
	stdin, tty, quiet bool
	timeout           time.Duration
}

func (o *session) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.container, "container", "c", "",
		"Container name. If omitted, use the pod's default container: that of its annotation, or else its first")
	cmd.Flags().BoolVarP(&o.stdin, "stdin", "i", false, "Pass stdin to the container")
	cmd.Flags().BoolVarP(&o.tty, "tty", "t", false, "Stdin is a TTY")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "Only print output from the remote session")
	addTimeoutFlag(cmd, &o.timeout, streamTimeout)
}

// noticef writes a line to the standard error stream unless quiet is set.
func (o *session) noticef(format string, args ...any) {
	if !o.quiet {
		o.Errorf(format, args...)
	}
}

// terminals returns the terminals of a session. in is nil for a session without a TTY.
func (o *session) terminals() (in, out *os.File) {
	if !o.stdin || !o.tty {
		return nil, nil
	}
	in, ok := terminal.File(o.In)
	if !ok {
		o.noticef("Unable to use a TTY - input is not a terminal or the right kind of file")
		return nil, nil
	}
	if out, ok = terminal.File(o.Out); !ok {
		out = in
	}
	return in, out
}

// streams calls run with the standard streams. A terminal is in raw mode until run returns or panics. firstSizes are sent before
// the terminal's size.
func (o *session) streams(ctx context.Context, firstSizes func(stream.TerminalSize) []stream.TerminalSize, run func(*stream.ExecOptions) error) error {
	// Out and Err are unwrapped, because the program in the container controls the terminal.
	opts := &stream.ExecOptions{Container: o.container, Stdout: printable.Unwrap(o.Out), Stderr: printable.Unwrap(o.Err)}
	if o.stdin {
		opts.Stdin = o.In
	}
	in, out := o.terminals()
	if in == nil {
		return run(opts)
	}
	restore, err := terminal.Raw(in, out)
	if err != nil {
		return err
	}
	defer restore()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first []stream.TerminalSize
	if size, ok := terminal.Size(out); ok && firstSizes != nil {
		first = firstSizes(size)
	}
	opts.TTY = true
	opts.Stderr = nil
	opts.Resize = terminal.Sizes(ctx, out, first...)
	return run(opts)
}

// exitError converts the result of a command in a container to the error of the program.
func (o *session) exitError(err error) error {
	var ended *stream.ExitError
	if apierrors.IsInternalError(err) { // an error of the node, such as a missing program
		return errors.New(command.ServerMessage(err))
	}
	if !errors.As(err, &ended) {
		return err
	}
	o.Errorf("command terminated with exit code %d", ended.Code)
	return &exit.Error{Code: ended.Code}
}
