package stream

import (
	"context"
	"fmt"
	"io"
)

// AttachOptions say whose streams to take part in and how, as those of [ExecOptions] do.
type AttachOptions struct {
	Container      string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan Size
}

// Attach takes part in the streams of a container's main process, from now on, until that ends or ctx does. Stdin and
// TTY work where the container's spec has stdin and tty set. Nil options attach to its standard output and throw that
// away, which waits for the process. Errors are those of [Exec].
func Attach(ctx context.Context, pods Target, pod string, opts *AttachOptions) error {
	if opts == nil {
		opts = &AttachOptions{}
	}
	running, err := open(ctx, pods, pod, "attach", &ExecOptions{
		Container: opts.Container, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, TTY: opts.TTY, Resize: opts.Resize,
	})
	if err == nil {
		err = running.run()
	}
	return inPod("attach to", pod, err)
}

// inPod says what was tried on which pod.
func inPod(what, pod string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s pod %q: %w", what, pod, err)
}
