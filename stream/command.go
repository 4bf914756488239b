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

const (
	defaultMaxOutput = 64 << 20
	// maxStderr limits the standard error in an ExitError, in bytes.
	maxStderr = 32 << 10
)

// Cmd is a command in a pod, used like os/exec's Cmd: set its options, then call Run, Output, or Start and Wait, once. It is not
// safe for concurrent use, except for its pipes.
type Cmd struct {
	ExecOptions

	// MaxOutput limits the bytes collected by [Cmd.Output] and [Cmd.CombinedOutput]; 0 means 64 MiB. More output ends the command
	// with an error.
	MaxOutput int

	ctx    context.Context
	target Target
	name   string

	input   *io.PipeReader
	outputs []*io.PipeWriter
	session *session
	done    chan struct{} // closed when the command has ended
	err     error
}

// Command returns the Cmd for a command in a pod, or in a pod of a service or workload. The end of ctx ends the command as
// described at [Exec].
func Command(ctx context.Context, target Target, name string, command ...string) *Cmd {
	return &Cmd{ctx: ctx, target: target, name: name, ExecOptions: ExecOptions{Command: command}}
}

// Run starts the command and waits for its end. Errors are as for [Exec].
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Start returns when the server has accepted the command. Wait returns the error of a missing program. A started command releases
// its resources at its end, even without Wait.
func (c *Cmd) Start() error {
	if c.done != nil {
		return errors.New("stream: the command was started before")
	}
	c.done = make(chan struct{})
	var err error
	if len(c.Command) == 0 {
		err = errors.New("there is no command to run")
	} else {
		c.session, err = openSession(c.ctx, c.target, c.name, "exec", c.ExecOptions)
	}
	if err != nil {
		c.finish(operationError("exec in", c.target, c.name, err))
		return c.err
	}
	// Without a reader of the pipes, the session blocks in a write.
	stop := context.AfterFunc(c.ctx, func() { c.closeOutputs(retry.ContextError(c.ctx)) })
	go func() {
		err := c.session.run()
		stop()
		c.finish(err)
	}()
	return nil
}

// finish sets the command's result and closes its pipes.
func (c *Cmd) finish(err error) {
	var exited *ExitError
	complete := err == nil || errors.As(err, &exited)
	if !complete && c.session != nil {
		err = operationError("exec in", c.target, c.name, c.session.pod.wrap(c.name, err))
	}
	c.err = err
	if c.input != nil {
		_ = c.input.Close()
	}
	if complete {
		err = nil
	}
	c.closeOutputs(err)
	close(c.done)
}

// closeOutputs closes the output pipes. An earlier error of a pipe stays.
func (c *Cmd) closeOutputs(err error) {
	for _, output := range c.outputs {
		_ = output.CloseWithError(err)
	}
}

// Wait returns the errors of [Exec] when the command has ended and all its output is written. Read its pipes to their end first;
// if ctx ends, unread output is dropped.
func (c *Cmd) Wait() error {
	if c.done == nil {
		return errors.New("stream: the command is not started")
	}
	<-c.done
	return c.err
}

// StdinPipe returns a pipe to the command's input. Closing it ends the input. After the command has ended, writes fail with
// io.ErrClosedPipe.
func (c *Cmd) StdinPipe() (io.WriteCloser, error) {
	if c.Stdin != nil || c.done != nil {
		return nil, errors.New("stream: Stdin is set, or the command is started")
	}
	reader, writer := io.Pipe()
	c.Stdin = reader
	c.input = reader
	return writer, nil
}

// StdoutPipe returns a pipe from the command's output. Its io.EOF means complete output; if the connection broke, reads fail with
// Wait's error. Closing it ends the command.
func (c *Cmd) StdoutPipe() (io.ReadCloser, error) { return c.pipe(&c.Stdout) }

// StderrPipe is StdoutPipe for standard error.
func (c *Cmd) StderrPipe() (io.ReadCloser, error) { return c.pipe(&c.Stderr) }

func (c *Cmd) pipe(output *io.Writer) (io.ReadCloser, error) {
	if *output != nil || c.done != nil {
		return nil, errors.New("stream: Stdout or Stderr is set, or the command is started")
	}
	reader, writer := io.Pipe()
	*output = writer
	c.outputs = append(c.outputs, writer)
	return reader, nil
}

// Output runs the command and returns its standard output. If the exit code is not 0 and Stderr is not set, the *[ExitError]
// holds the end of its standard error.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("stream: Stdout is set")
	}
	stdout := c.newOutputBuffer()
	stderr := &tailBuffer{}
	c.Stdout = stdout
	if c.Stderr == nil {
		c.Stderr = stderr
	}
	err := c.Run()
	if exited, ok := errors.AsType[*ExitError](err); ok {
		exited.Stderr = stderr.Bytes()
	}
	return stdout.Bytes(), err
}

// CombinedOutput runs the command and returns its standard output and standard error.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("stream: Stdout or Stderr is set")
	}
	output := c.newOutputBuffer()
	c.Stdout = output
	c.Stderr = output
	err := c.Run()
	return output.Bytes(), err
}

// outputBuffer collects output up to a limit.
type outputBuffer struct {
	bytes.Buffer

	limit int
}

func (c *Cmd) newOutputBuffer() *outputBuffer {
	return &outputBuffer{limit: cmp.Or(c.MaxOutput, defaultMaxOutput)}
}

func (b *outputBuffer) Write(text []byte) (int, error) {
	if b.Len()+len(text) > b.limit {
		return 0, fmt.Errorf("the output is larger than %d bytes: read it from StdoutPipe, or set MaxOutput", b.limit)
	}
	return b.Buffer.Write(text)
}

// tailBuffer keeps the last maxStderr bytes written to it.
type tailBuffer struct{ text []byte }

func (t *tailBuffer) Write(text []byte) (int, error) {
	t.text = append(t.text, text...)
	if len(t.text) > 2*maxStderr {
		t.text = append(t.text[:0], t.Bytes()...)
	}
	return len(text), nil
}

func (t *tailBuffer) Bytes() []byte { return t.text[max(0, len(t.text)-maxStderr):] }
