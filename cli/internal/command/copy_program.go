package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// copyProgram is the companion program. Its package is larger than anyctl: it has an API server and evaluates CEL.
const copyProgram = "anyctl-copy"

// copyOff is the value of --copy without a copy.
const copyOff = "off"

// Copy is a copy of the cluster, served by the program anyctl-copy. The program copies the cluster of a kubeconfig and context, prints
// the path of a kubeconfig of the copy when it is ready, and ends when its standard input is closed.
type Copy struct {
	state   *State
	program string // the value of --copy

	cmd    *exec.Cmd
	stdin  io.Closer
	client *dynamic.Client
}

// NewCopy returns a Copy with the flag --copy in fs.
func (s *State) NewCopy(fs *pflag.FlagSet) *Copy {
	c := &Copy{state: s}
	fs.StringVar(&c.program, "copy", "", "The program that serves a copy of the cluster, or off. It checks what a dry run cannot: objects in namespaces and of kinds of the same files. The default is "+copyProgram+" beside anyctl or on PATH.")
	return c
}

// CopyCommand returns a command of the program anyctl-copy: all arguments are passed.
func (s *State) CopyCommand(use, short string, name ...string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, DisableFlagParsing: true, RunE: func(cmd *cobra.Command, args []string) error {
		path, err := (&Copy{}).path()
		if err != nil {
			return err
		}
		program := exec.CommandContext(cmd.Context(), path, append(name, args...)...)
		program.Stdin = s.In
		program.Stdout = s.Out
		program.Stderr = s.Err
		program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
		err = program.Run()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return &exit.Error{Code: ended.ExitCode()}
		}
		return err
	}}
}

// Open returns the source of [plan.Options].Copy: nil with --copy=off.
func (c *Copy) Open() func(context.Context) (*dynamic.Client, error) {
	if c.program == copyOff {
		return nil
	}
	return c.open
}

func (c *Copy) open(ctx context.Context) (*dynamic.Client, error) {
	path, err := c.path()
	if err != nil {
		return nil, err
	}
	args, err := c.args()
	if err != nil {
		return nil, err
	}
	c.cmd = exec.CommandContext(ctx, path, args...)
	c.cmd.Stderr = c.state.Err
	c.cmd.WaitDelay = copyStopTimeout
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	if err := c.cmd.Start(); err != nil {
		c.cmd = nil
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	c.stdin = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s %s: it ended without the path of a kubeconfig", path, args[0]), c.Close())
	}
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: strings.TrimSpace(line)})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", path, err)
	}
	c.client, err = dynamic.Connect(ctx, cfg)
	return c.client, err
}

// path returns the path of the program.
func (c *Copy) path() (string, error) {
	if c.program != "" {
		return exec.LookPath(c.program)
	}
	name := copyProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if own, err := os.Executable(); err == nil {
		inFolder := filepath.Join(filepath.Dir(own), name)
		if info, err := os.Stat(inFolder); err == nil && !info.IsDir() {
			return inFolder, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program %s is neither beside anyctl nor on PATH (go install github.com/anykind/anykind/apitest/cel/cmd/%[1]s@latest, or set --copy=PROGRAM)", copyProgram)
	}
	return path, nil
}

// args returns the arguments of the program. It has no further connection flags.
func (c *Copy) args() ([]string, error) {
	connection := c.state.Connection
	if cmp.Or(connection.Server, connection.Cluster, connection.User, connection.Token, connection.Username, connection.As, connection.ClientCertificate) != "" {
		return nil, fmt.Errorf("%s takes only --kubeconfig and --context (set --copy=%s to plan without a copy)", copyProgram, copyOff)
	}
	args := []string{"serve"}
	if connection.Kubeconfig != "" {
		args = append(args, "--kubeconfig", connection.Kubeconfig)
	}
	if connection.Context != "" {
		args = append(args, "--context", connection.Context)
	}
	return args, nil
}

// copyStopTimeout limits the end of the program after its standard input is closed.
const copyStopTimeout = 10 * time.Second

// Close ends the program, if it was started.
func (c *Copy) Close() error {
	if c.client != nil {
		c.client.Close()
	}
	if c.cmd == nil {
		return nil
	}
	_ = c.stdin.Close() // the program may have closed it
	timer := time.AfterFunc(copyStopTimeout, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	err := c.cmd.Wait()
	c.cmd = nil
	if err != nil {
		return fmt.Errorf("%s: %w", copyProgram, err)
	}
	return nil
}
