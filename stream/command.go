package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/anykind/anykind/internal/retry"
)

// Cmd is a command in a pod, used as os/exec's Cmd is: set its options, then Run, Output, or Start and Wait it, once. It
// is not safe for concurrent use, apart from its pipes.
type Cmd struct {
	ExecOptions

	// MaxOutput is how many bytes [Cmd.Output] and [Cmd.CombinedOutput] collect at most; 0 means 64 MiB. A command that
	// writes more is ended, with an error.
	MaxOutput int

	ctx    context.Context
	target Target
	name   string

	input   *io.PipeReader
	outputs []*io.PipeWriter
	running *session
	ended   chan struct{}
	err     error
}

// Command prepares to run a command in a pod, or in one of a service's or workload's. The end of ctx ends it, as [Exec]
// says.
func Command(ctx context.Context, target Target, name string, command ...string) *Cmd {
	return &Cmd{ctx: ctx, target: target, name: name, ExecOptions: ExecOptions{Command: command}}
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
		c.running, err = open(c.ctx, c.target, c.name, "exec", &c.ExecOptions)
	}
	if err != nil {
		c.finish(onObject("exec in", c.target, c.name, err))
		return c.err
	}
	// Nobody may be reading the pipes: then the session waits in a write to one.
	release := context.AfterFunc(c.ctx, func() { c.closeOutputs(retry.ContextError(c.ctx)) })
	go func() {
		err := c.running.run()
		release()
		c.finish(err)
	}()
	return nil
}

// finish tells those who read and write the command's pipes how it ended.
func (c *Cmd) finish(err error) {
	var exited *ExitError
	complete := err == nil || errors.As(err, &exited)
	if !complete && c.running != nil {
		err = onObject("exec in", c.target, c.name, c.running.pod.of(c.name, err))
	}
	c.err = err
	if c.input != nil {
		_ = c.input.Close()
	}
	if complete {
		c.closeOutputs(nil)
	} else {
		c.closeOutputs(err)
	}
	close(c.ended)
}

// closeOutputs ends the pipes from the command. The first error that one is closed with stays.
func (c *Cmd) closeOutputs(err error) {
	for _, output := range c.outputs {
		_ = output.CloseWithError(err)
	}
}

// Wait returns when the command has ended and all its output is written, with the errors of [Exec]. Read its pipes to
// their end first; where ctx ends, what is left in them is dropped.
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
	c.Stdin, c.input = reader, reader
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
	c.outputs = append(c.outputs, writer)
	return reader, nil
}

// Output runs the command and returns what it wrote to its standard output. Where it exits with another code than 0 and
// Stderr is not set, the *[ExitError] holds the end of what it wrote there.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("stream: Stdout is set")
	}
	stdout := c.buffer()
	c.Stdout = stdout
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
	both := c.buffer()
	c.Stdout, c.Stderr = both, both
	err := c.Run()
	return both.Bytes(), err
}

// defaultMaxOutput is the default of Cmd.MaxOutput.
const defaultMaxOutput = 64 << 20

// outputBuffer collects output up to a limit.
type outputBuffer struct {
	bytes.Buffer

	limit int
}

func (c *Cmd) buffer() *outputBuffer {
	return &outputBuffer{limit: cmp.Or(c.MaxOutput, defaultMaxOutput)}
}

// Write implements io.Writer.
func (b *outputBuffer) Write(text []byte) (int, error) {
	if b.Len()+len(text) > b.limit {
		return 0, fmt.Errorf("the output is larger than %d bytes: read it from StdoutPipe, or set MaxOutput", b.limit)
	}
	return b.Buffer.Write(text)
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
