package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// maxExecAnswer is far more than any credential needs.
const maxExecAnswer = 1 << 20

// run runs the program while ctx lasts, and returns what it printed.
func (a *execAuthenticator) run(ctx context.Context) ([]byte, error) {
	path, err := allowedPath(a.plugin)
	if err != nil {
		return nil, err
	}
	terminal := a.interactive()
	if a.plugin.InteractiveMode == kubeconfig.InteractiveAlways && !terminal {
		return nil, errors.New("it needs a terminal, as its interactiveMode is Always, and standard input is none: " +
			"run this in a terminal, or use a credential that needs nobody to type")
	}
	interactive := terminal && a.plugin.InteractiveMode != kubeconfig.InteractiveNever
	info, err := a.info(a.now(), interactive)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answer := &boundedBuffer{most: maxExecAnswer, overflow: stop}
	cmd := a.command(ctx, path, interactive)
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+info)
	cmd.Stdout, cmd.Stderr = answer, a.stderr
	if err := a.failure(cmd.Run(), cmd, answer); err != nil {
		return nil, err
	}
	return answer.data.Bytes(), nil
}

func (a *execAuthenticator) command(ctx context.Context, path string, interactive bool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = append([]string{a.plugin.Command}, a.plugin.Args...)
	cmd.Env = os.Environ()
	for _, variable := range a.plugin.Env {
		cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value.Reveal())
	}
	if interactive {
		cmd.Stdin = os.Stdin
	}
	cmd.WaitDelay = a.grace
	// A process of another group than the terminal's is stopped when it asks there for a password.
	if !a.terminal() {
		killChildrenToo(cmd)
	}
	return cmd
}

// failure says why a run is one. What the program printed is in no error.
func (a *execAuthenticator) failure(err error, cmd *exec.Cmd, answer *boundedBuffer) error {
	var exit *exec.ExitError
	switch {
	case answer.full:
		return fmt.Errorf("it prints more than %d MiB, which is no credential: does the command do something else?", maxExecAnswer>>20)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		// The latter is a program that left another behind, which still holds the output: what it printed itself is there.
		return nil
	case errors.As(err, &exit):
		return fmt.Errorf("it failed: %w: see what it wrote to standard error, or run it by hand; you may have to log in again", err)
	case cmd.ProcessState == nil:
		return notFound(a.plugin, err)
	default:
		return fmt.Errorf("run it: %w", err)
	}
}

// boundedBuffer calls overflow when it gets more than it takes.
type boundedBuffer struct {
	data     bytes.Buffer // not embedded: io.Copy would call its ReadFrom, past the bound
	most     int
	overflow func()
	full     bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.data.Len()+len(p) > b.most {
		b.full = true
		b.overflow()
		return 0, errors.New("too much output")
	}
	return b.data.Write(p)
}
