package execplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/anykind/anykind/transport/internal/subprocess"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// maxOutput is far more than a credential needs.
const maxOutput = 1 << 20

var errNotAllowed = errors.New("is not allowed (add it to ExecPlugin.Allowlist if you trust it)")

func (c *Config) lookPath() (string, error) {
	path, err := exec.LookPath(c.Command)
	if err != nil {
		path = ""
	}
	if c.Allowlist != nil && !c.isAllowed(path) {
		at := ""
		if path != "" {
			at = " (" + path + ")"
		}
		return "", fmt.Errorf("the command%s %w", at, errNotAllowed)
	}
	if err != nil {
		return "", c.startError(err)
	}
	return path, nil
}

// isAllowed compares names with names, and resolved paths with resolved paths, like client-go. A relative path never equals a
// name.
func (c *Config) isAllowed(path string) bool {
	for _, entry := range c.Allowlist {
		if entry == "" {
			continue
		}
		if entry == c.Command {
			return true
		}
		resolved, err := exec.LookPath(entry)
		if err == nil && path != "" && filepath.Clean(resolved) == filepath.Clean(path) {
			return true
		}
	}
	return false
}

// startError explains why the program cannot be started, with the install hint if it is missing.
func (c *Config) startError(err error) error {
	hint := strings.TrimSpace(c.InstallHint)
	switch {
	case errors.Is(err, exec.ErrDot):
		return fmt.Errorf("%w (write the command as a path)", err)
	case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("start the program: %w", err)
	case hint == "":
		return fmt.Errorf("program not found (install it, or put it in PATH): %w", err)
	default:
		return fmt.Errorf("program not found: %w; how to install it:\n%s", err, hint)
	}
}

func (a *Authenticator) run(ctx context.Context) ([]byte, error) {
	path, err := a.cfg.lookPath()
	if err != nil {
		return nil, err
	}
	terminal := a.stdinIsTerminal()
	if a.cfg.InteractiveMode == kubeconfig.InteractiveAlways && !terminal {
		return nil, errors.New("it needs a terminal, as its interactiveMode is Always, and standard input is none " +
			"(run this in a terminal, or use a credential that nobody has to type)")
	}
	interactive := terminal && a.cfg.InteractiveMode != kubeconfig.InteractiveNever
	info, err := a.execInfo(interactive)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	output := &limitedBuffer{limit: maxOutput, onOverflow: cancel}
	cmd := a.command(ctx, path, interactive)
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+info)
	cmd.Stdout = output
	cmd.Stderr = a.stderr
	if err := a.runError(cmd.Run(), cmd, output); err != nil {
		return nil, err
	}
	return output.data.Bytes(), nil
}

func (a *Authenticator) command(ctx context.Context, path string, interactive bool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = append([]string{a.cfg.Command}, a.cfg.Args...)
	cmd.Env = os.Environ()
	for _, variable := range a.cfg.Env {
		cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value.Reveal())
	}
	if interactive {
		cmd.Stdin = os.Stdin
	}
	cmd.WaitDelay = a.waitDelay
	// A background process group would be stopped when it reads a password from the terminal.
	if !a.hasTerminal() {
		subprocess.KillGroup(cmd)
	}
	return cmd
}

// runError explains the error of a run, without any output of the program.
func (a *Authenticator) runError(err error, cmd *exec.Cmd, output *limitedBuffer) error {
	var exit *exec.ExitError
	switch {
	case output.overflowed:
		return fmt.Errorf("it printed more than %d MiB: this is no credential (is the command a credential plugin?)", maxOutput>>20)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		// With ErrWaitDelay, the program printed its output, but a child process still holds the output open.
		return nil
	case errors.As(err, &exit):
		return fmt.Errorf("it failed: %w (see its standard error, or run it by hand; you may have to log in again)", err)
	case cmd.ProcessState == nil:
		return a.cfg.startError(err)
	default:
		return fmt.Errorf("run it: %w", err)
	}
}

// execInfo returns the value of KUBERNETES_EXEC_INFO, an ExecCredential without a status.
func (a *Authenticator) execInfo(interactive bool) (string, error) {
	type spec struct {
		Cluster     *Cluster `json:"cluster,omitempty"`
		Interactive bool     `json:"interactive"`
	}
	info := struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Spec       spec   `json:"spec"`
	}{"ExecCredential", a.cfg.APIVersion, spec{Interactive: interactive}}
	if a.cfg.ProvideClusterInfo {
		// Plugins get the certificates themselves, even if the kubeconfig names a file.
		authority, err := a.cfg.CA.Content(a.Now())
		if err != nil {
			return "", fmt.Errorf("read the certificate authority for it: %w", err)
		}
		cluster := a.cfg.Cluster
		cluster.CAData = authority
		info.Spec.Cluster = &cluster
	}
	value, err := json.Marshal(info)
	if err != nil {
		return "", fmt.Errorf("encode KUBERNETES_EXEC_INFO: %w", err)
	}
	return string(value), nil
}

// limitedBuffer is a bytes.Buffer with a limit. Writes beyond it fail.
type limitedBuffer struct {
	data       bytes.Buffer // not embedded: io.Copy would call its ReadFrom, beyond the limit
	limit      int
	onOverflow func()
	overflowed bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.data.Len()+len(p) > b.limit {
		b.overflowed = true
		b.onOverflow()
		return 0, errors.New("too much output")
	}
	return b.data.Write(p)
}
