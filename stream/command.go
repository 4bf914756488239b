package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Cmd is a command in a pod, used as os/exec's Cmd is: set its options, then Run, Output, or Start and Wait it, once. It
// is not safe for concurrent use, apart from its pipes.
type Cmd struct {
	ExecOptions

	ctx  context.Context
	pods Target
	pod  string

	ends    []func(error) // what the command's end closes
	running *session
	ended   chan struct{}
	err     error
}

// Command prepares to run a command in a pod. The end of ctx ends it, as [Exec] says.
func Command(ctx context.Context, pods Target, pod string, command ...string) *Cmd {
	return &Cmd{ctx: ctx, pods: pods, pod: pod, ExecOptions: ExecOptions{Command: command}}
}

// Run starts the command and waits for its end. Errors are those of [Exec].
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Start returns once the server has agreed to run the command; that the container has no such program is for Wait to
// tell. A command that is started frees what it holds when it ends, waited for or not.
func (c *Cmd) Start() error {
	if c.ended != nil {
		return errors.New("stream: the command was started before")
	}
	c.ended = make(chan struct{})
	var err error
	if len(c.Command) == 0 {
		err = errors.New("there is no command to run")
	} else {
		c.running, err = open(c.ctx, c.pods, c.pod, "exec", &c.ExecOptions)
	}
	if err != nil {
		c.finish(inPod("exec in", c.pod, err))
		return c.err
	}
	go func() { c.finish(c.running.run()) }()
	return nil
}

// finish tells those who read and write the command's pipes how it ended.
func (c *Cmd) finish(err error) {
	var exited *ExitError
	complete := err == nil || errors.As(err, &exited)
	if !complete && c.running != nil {
		err = inPod("exec in", c.pod, err)
	}
	c.err = err
	for _, end := range c.ends {
		if complete {
			end(nil)
		} else {
			end(err)
		}
	}
	close(c.ended)
}

// Wait returns when the command has ended and all its output is written, with the errors of [Exec]. Read its pipes to
// their end first.
func (c *Cmd) Wait() error {
	if c.ended == nil {
		return errors.New("stream: the command is not started")
	}
	<-c.ended
	return c.err
}

// StdinPipe gives a pipe to the command's input. Close it to let the command know that all is written. Once the command
// has ended, writing fails with io.ErrClosedPipe.
func (c *Cmd) StdinPipe() (io.WriteCloser, error) {
	if c.Stdin != nil || c.ended != nil {
		return nil, errors.New("stream: Stdin is set, or the command is started")
	}
	reader, writer := io.Pipe()
	c.Stdin = reader
	c.ends = append(c.ends, func(error) { _ = reader.Close() })
	return writer, nil
}

// StdoutPipe gives a pipe from the command's output. Its io.EOF means that all was read; where the connection broke,
// reading fails with Wait's error. Closing it ends the command.
func (c *Cmd) StdoutPipe() (io.ReadCloser, error) { return c.pipe(&c.Stdout) }

// StderrPipe is as StdoutPipe, for the command's standard error.
func (c *Cmd) StderrPipe() (io.ReadCloser, error) { return c.pipe(&c.Stderr) }

func (c *Cmd) pipe(of *io.Writer) (io.ReadCloser, error) {
	if *of != nil || c.ended != nil {
		return nil, errors.New("stream: Stdout or Stderr is set, or the command is started")
	}
	reader, writer := io.Pipe()
	*of = writer
	c.ends = append(c.ends, func(err error) { _ = writer.CloseWithError(err) })
	return reader, nil
}

// Output runs the command and returns what it wrote to its standard output. Where it exits with another code than 0 and
// Stderr is not set, the *[ExitError] holds the end of what it wrote there.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("stream: Stdout is set")
	}
	var stdout bytes.Buffer
	c.Stdout = &stdout
	stderr := &tail{}
	if c.Stderr == nil {
		c.Stderr = stderr
	}
	err := c.Run()
	var exited *ExitError
	if errors.As(err, &exited) {
		exited.Stderr = stderr.last()
	}
	return stdout.Bytes(), err
}

// CombinedOutput runs the command and returns what it wrote to its standard output and standard error.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("stream: Stdout or Stderr is set")
	}
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	err := c.Run()
	return both.Bytes(), err
}

// maxTail is how much an ExitError holds of what the command wrote.
const maxTail = 32 << 10

// tail keeps the last of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(text []byte) (int, error) {
	t.kept = append(t.kept, text...)
	if len(t.kept) > 2*maxTail {
		t.kept = append(t.kept[:0], t.last()...)
	}
	return len(text), nil
}

func (t *tail) last() []byte { return t.kept[max(0, len(t.kept)-maxTail):] }
