//go:build unix

package main

import (
	"cmp"
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
	"unsafe"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/process"
)

// Environment variables of exec's command.
const (
	clusterDirEnv = "ANYKIND_SANDBOX" // its folder
	kubectlEnv    = "ANYKIND_KUBECTL" // the path of its kubectl, if it has one
)

const executeText = `Starts a cluster, runs COMMAND, stops the cluster and exits as COMMAND did, or
with 1 if a component died and COMMAND did not fail. Signals are forwarded to
COMMAND. Its environment has, besides that of this program:

  KUBECONFIG       the cluster's kubeconfig
  ANYKIND_SANDBOX  the cluster's folder, with the socket control.sock in it
  ANYKIND_KUBECTL  the path of a kubectl of the cluster's version; empty if kubectl
                   is not among the components
  KUBECACHEDIR     a folder for discovery caches, removed with the cluster

COMMAND runs in $PWD, the user's folder even with go run -C. With make -C that is not
the Makefile's folder; use --dir.`

func execute(ctx context.Context, args []string) error {
	var opts cluster.Options
	flags := newFlags("exec", "[flags] -- COMMAND [ARG...]", executeText)
	clusterFlags(flags, &opts)
	dir := flags.String("dir", "", "`folder` to run COMMAND in (default $PWD)")
	reuse := flags.Bool("reuse", false, "use the cluster that up started, starting it if need be, and leave it up")
	name := flags.String("name", defaultName, "with --reuse, the `name` of the cluster")
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("exec: missing command (write it after the flags and --)")
	}
	cmd, err := findCommand(flags.Args(), *dir)
	if err != nil {
		return err
	}
	opts.Progress = os.Stderr
	if *reuse {
		running, err := ensureUp(ctx, *name, &opts)
		if err != nil {
			return err
		}
		return runCommand(ctx, cmd, clusterEnvironment(running.Dir, running.Kubectl))
	}
	c, err := cluster.Start(ctx, &opts)
	if err != nil {
		return err
	}
	death := make(chan error, 1)
	go func() {
		<-c.Done()
		death <- reportDeath(c.Err())
	}()
	err = runCommand(ctx, cmd, clusterEnvironment(c.Dir, c.Kubectl))
	stopErr := c.Stop(context.WithoutCancel(ctx))
	if err != nil && stopErr != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", stopErr) // err is the exit code
	}
	// COMMAND's own failure comes first; without it, a death must fail exec.
	return cmp.Or(err, stopErr, <-death)
}

// reportDeath prints the death of a component while COMMAND still runs, and returns the exit code. It returns nil if the cluster
// was stopped.
func reportDeath(err error) error {
	var died *cluster.DiedError
	if !errors.As(err, &died) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "sandbox:", died)
	return exitCode(1)
}

// commandGrace limits the time for a command to exit after the death of go run, the sender of its signals.
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
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// clusterEnvironment returns the environment variables of a cluster for a command. kubectl is a path, or empty. The discovery
// cache is in the cluster's folder, because later clusters may get the same port.
func clusterEnvironment(dir, kubectl string) []string {
	return []string{
		"KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), clusterDirEnv + "=" + dir, kubectlEnv + "=" + kubectl,
		"KUBECACHEDIR=" + filepath.Join(dir, "kubectl-cache"),
	}
}

// runCommand runs cmd with the additional variables env and returns its exit code as
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
	defer func() { _ = family.Close() }() // it has no folder to remove

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	restore := setForeground(cmd)
	defer restore()
	p, err := family.Start(cmd)
	if err != nil {
		return err
	}
	passSignals(ctx, p, signals)
	return asExitCode(p.Err())
}

// commandDir returns the absolute path of the command's folder. go run -C changes the working directory but not PWD, as set by
// the user's shell.
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
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	return filepath.Abs(dir)
}

// passSignals forwards signals to p until it exits. If ctx ends without a signal, go run has died, and p is stopped, too.
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
		return exitCode(128 + int(status.Signal())) // as in shells
	}
	return exitCode(exit.ExitCode())
}

// setForeground makes cmd the terminal's foreground job if this process is the foreground job. cmd can then read from the
// terminal, and only cmd gets its Ctrl-C. restore makes this process the foreground job again.
func setForeground(cmd *exec.Cmd) (restore func()) {
	fd := int(os.Stdin.Fd())
	if foregroundGroup(fd) != syscall.Getpgrp() {
		return func() {}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: fd}
	return func() {
		// SIGTTOU would stop this background process.
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Reset(syscall.SIGTTOU)
		group := int32(syscall.Getpgrp())
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&group)))
	}
}

// foregroundGroup returns the foreground process group of terminal fd, or -1.
func foregroundGroup(fd int) int {
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	if errno != 0 {
		return -1
	}
	return int(group)
}
