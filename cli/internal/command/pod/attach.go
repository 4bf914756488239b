package pod

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/stream"
)

// defaultDetachKeys is the default of --detach-keys. The keys end attach without ending the process.
const defaultDetachKeys = "ctrl-p,ctrl-q"

func attachCommand(s *command.State) *cobra.Command {
	o := &session{State: s}
	detachKeys := defaultDetachKeys
	cmd := &cobra.Command{
		Use:     "attach (POD | TYPE/NAME) -c CONTAINER",
		Short:   "Attach to a running container",
		Long:    "Attach to the process that runs in a container of a pod, or of one of the pods of a service or workload.",
		Example: "  anyctl attach web-0\n  anyctl attach -it web-0 -c app",
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := parseKeys(detachKeys)
			if err != nil {
				return fmt.Errorf("could not bind detach keys: %w", err)
			}
			switch len(args) {
			case 0:
				return errors.New("at least 1 argument is required for attach")
			case 1:
			case 2:
				args = []string{args[0] + "/" + args[1]}
			default:
				return fmt.Errorf("expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw %d: %v", len(args), args)
			}
			return interrupted(cmd.Context(), runAttach(cmd, o, args[0], keys))
		},
		DisableFlagsInUseLine: true,
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&detachKeys, "detach-keys", detachKeys, "The key sequence that detaches from a container with a terminal")
	return cmd
}

func runAttach(cmd *cobra.Command, o *session, argument string, keys []byte) error {
	ctx := cmd.Context()
	f, err := findPod(ctx, o.State, argument, o.timeout, "attach to", compareForStreams)
	if err != nil {
		return err
	}
	if err := rejectEnded(f.pod, "attach"); err != nil {
		return err
	}
	return o.attach(ctx, cmd.CommandPath(), f, keys)
}

// attach attaches to a container of a pod. path is the command line of attach.
func (o *session) attach(ctx context.Context, path string, f *found, detachKeys []byte) (err error) {
	if o.container, err = chooseContainer(f.pod, o.container, o.noticef); err != nil {
		return fmt.Errorf("cannot attach to the container: %w", err)
	}
	isTerminal := hasTerminal(f.pod, o.container)
	if o.tty && !isTerminal {
		o.noticef("error: Unable to use a TTY - container %s did not allocate one", o.container)
	}
	o.tty = isTerminal // with a terminal, the container sends a single stream
	o.noticef("All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.")
	o.noticef("If you don't see a command prompt, try pressing enter.")
	usedTerminal := false
	err = o.streams(ctx, redrawSizes, func(opts *stream.ExecOptions) error {
		usedTerminal = opts.TTY
		if opts.TTY {
			opts.Stdin = &detachReader{reader: opts.Stdin, keys: detachKeys}
		}
		return stream.Attach(ctx, f.pods, f.pod.GetName(), &stream.AttachOptions{
			Container: o.container, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, TTY: opts.TTY || isTerminal, Resize: opts.Resize,
		})
	})
	if err != nil && !errors.Is(err, errDetached) {
		return o.exitError(err)
	}
	if usedTerminal && !o.quiet {
		return o.Printf("Session ended, resume using '%s %s -c %s -n %s -i -t' command\n",
			path, f.pod.GetName(), o.container, f.pod.GetNamespace())
	}
	return nil
}

// redrawSizes returns a size different from the terminal's. A changed size makes the process redraw its screen.
func redrawSizes(size stream.TerminalSize) []stream.TerminalSize {
	return []stream.TerminalSize{{Width: size.Width + 1, Height: size.Height + 1}}
}

// errDetached ends a session detached with the detach keys.
var errDetached = errors.New("detached")

// detachReader reads until the detach keys are typed, and then returns errDetached. It holds back an incomplete sequence until
// the next key.
type detachReader struct {
	reader io.Reader
	keys   []byte
	typed  int    // number of matched keys
	ready  []byte // not yet returned by Read
	err    error
}

func (d *detachReader) Read(p []byte) (int, error) {
	buffer := make([]byte, len(p))
	for len(d.ready) == 0 && d.err == nil {
		n, err := d.reader.Read(buffer)
		for _, key := range buffer[:n] {
			if d.press(key) {
				err = errDetached
				break
			}
		}
		if d.err = err; err != nil && !errors.Is(err, errDetached) {
			d.ready = append(d.ready, d.keys[:d.typed]...)
		}
	}
	if len(d.ready) > 0 {
		n := copy(p, d.ready)
		d.ready = d.ready[n:]
		return n, nil
	}
	return 0, d.err
}

// press handles a key and reports whether the sequence is complete.
func (d *detachReader) press(key byte) (detached bool) {
	if d.typed < len(d.keys) && key == d.keys[d.typed] {
		d.typed++
		return d.typed == len(d.keys)
	}
	d.ready = append(d.ready, d.keys[:d.typed]...)
	d.typed = 0
	if key == d.keys[0] {
		d.typed = 1
		return len(d.keys) == 1
	}
	d.ready = append(d.ready, key)
	return false
}
