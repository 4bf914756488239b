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
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/internal/process"
)

// commandGrace is how long a command may take to end when what ran us is gone
// and nobody is left to send it further signals.
const commandGrace = 10 * time.Second

// runCommand runs argv against the cluster in clusterDir and returns how it
// exited as an exitCode, or nil.
func runCommand(ctx context.Context, argv []string, dir, clusterDir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Dir = commandDir(dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+filepath.Join(clusterDir, "kubeconfig"), clusterDirEnv+"="+clusterDir, "PWD="+cmd.Dir)
	family, err := process.NewFamily("")
	if err != nil {
		return err
	}
	defer family.Close()

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

// commandDir is where the command runs: go run -C changes the working directory
// but leaves PWD as the user's shell set it.
func commandDir(chosen string) string {
	for _, dir := range []string{chosen, os.Getenv("PWD")} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return chosen // wrong or empty: exec says so, or takes the working directory
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
