package pod

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/internal/terminal"
	"github.com/anykind/anykind/stream"
)

// streamTimeout is how long exec, attach and port-forward wait for a pod by default.
const streamTimeout = time.Minute

// session are the options of exec and attach, and the streams that they use.
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

// noticef writes a line that is not output of the container.
func (o *session) noticef(format string, args ...any) {
	if !o.quiet {
		o.Errorf(format, args...)
	}
}

// terminals returns the terminals that a session with a TTY uses; in is nil if there is to be none.
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

// streams connects the standard streams, and calls run with them. On a terminal it is in raw mode until run returns, whatever
// the reason. firstSizes are sent before the terminal's size.
func (o *session) streams(ctx context.Context, firstSizes func(stream.TerminalSize) []stream.TerminalSize, run func(*stream.ExecOptions) error) error {
	// The program in the container uses the terminal as its own.
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
	opts.TTY, opts.Stderr, opts.Resize = true, nil, terminal.Sizes(ctx, out, first...)
	return run(opts)
}

// exitError returns the error with which the program ends after a command in a container.
func (o *session) exitError(err error) error {
	var exit *stream.ExitError
	if apierrors.IsInternalError(err) { // of the node, such as a program that does not exist
		return errors.New(serverMessage(err))
	}
	if !errors.As(err, &exit) {
		return err
	}
	o.Errorf("command terminated with exit code %d", exit.Code)
	return &command.ExitError{Code: exit.Code}
}
