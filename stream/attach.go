package stream

import (
	"context"
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
// away, which waits for the process. The target may be a service or workload, as that of [Exec]; errors are those of
// Exec.
func Attach(ctx context.Context, target Target, name string, opts *AttachOptions) error {
	if opts == nil {
		opts = &AttachOptions{}
	}
	running, err := open(ctx, target, name, "attach", &ExecOptions{
		Container: opts.Container, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, TTY: opts.TTY, Resize: opts.Resize,
	})
	if err == nil {
		err = running.run()
	}
	return onObject("attach to", target, name, err)
}
