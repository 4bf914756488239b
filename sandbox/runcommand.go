//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/internal/process"
)

// commandGrace is how long a command may take to end when what ran us is gone
// and nobody is left to send it further signals.
const commandGrace = 10 * time.Second

// findCommand prepares argv to run in dir, or in the user's folder for "".
func findCommand(argv []string, dir string) (*exec.Cmd, error) {
	dir, err := commandDir(dir)
	if err != nil {
		return nil, fmt.Errorf("exec: --dir: %w", err)
	}
	path := argv[0]
	if strings.Contains(path, "/") && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if path, err = exec.LookPath(path); err != nil {
		return nil, err // it begins with "exec:" already
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Dir = dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd, nil
}

// clusterEnvironment returns the variables that name a cluster to the command run
// against it. kubectl is a path, or empty. Discovery caches live as long as the
// cluster: another one may get its port.
func clusterEnvironment(dir, kubectl string) []string {
	return []string{
		"KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), clusterDirEnv + "=" + dir, kubectlEnv + "=" + kubectl,
		"KUBECACHEDIR=" + filepath.Join(dir, "kubectl-cache"),
	}
}

// runCommand runs cmd with the further variables env and returns how it exited as
// an exitCode, or nil.
func runCommand(ctx context.Context, cmd *exec.Cmd, env []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd.Env = append(append(os.Environ(), env...), "PWD="+cmd.Dir)
	family, err := process.NewFamily("")
	if err != nil {
		return err
	}
	defer func() { _ = family.Close() }() // it has no folder that could stay

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	giveBack := lendTerminal(cmd)
	defer giveBack()
	p, err := family.Start(cmd)
	if err != nil {
		return err
	}
	passSignals(ctx, p, signals)
	return asExitCode(p.Err())
}

// commandDir is the absolute path of the folder the command runs in. go run -C
// changes the working directory but leaves PWD as the user's shell set it.
func commandDir(chosen string) (string, error) {
	dir := os.Getenv("PWD")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = "."
	}
	if filepath.IsAbs(chosen) {
		dir = chosen
	} else {
		dir = filepath.Join(dir, chosen)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	return filepath.Abs(dir)
}

// passSignals hands signals to p until it ends. The end of ctx without a signal
// means that go run died; p is then told to end, too.
func passSignals(ctx context.Context, p *process.Process, signals <-chan os.Signal) {
	orphaned := ctx.Done()
	for {
		select {
		case <-p.Done():
			return
		case s := <-signals:
			orphaned = nil
			if sig, ok := s.(syscall.Signal); ok {
				p.Signal(sig)
			}
		case <-orphaned:
			select {
			case s := <-signals:
				orphaned = nil
				if sig, ok := s.(syscall.Signal); ok {
					p.Signal(sig)
				}
			case <-time.After(100 * time.Millisecond):
				p.Stop(context.WithoutCancel(ctx), syscall.SIGTERM, commandGrace)
			}
		}
	}
}

func asExitCode(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitCode(128 + int(status.Signal())) // as shells have it
	}
	return exitCode(exit.ExitCode())
}
