//go:build unix

package process

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// Process is one running child of a Family. Safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Pid is the process's id, and its group's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended and its group is killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended, as exec.Cmd.Wait does. It waits for the end.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Kill sends SIGKILL to the process and its group.
func (p *Process) Kill() { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }

// Signal sends sig to the process and its group, unless it has ended.
func (p *Process) Signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.Pid(), sig)
	}
}

// Stop asks the process to end with sig and kills it when it has not done so
// after grace, or when ctx ends. It returns once the process has ended.
func (p *Process) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) {
	p.Signal(sig)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	p.Kill()
	<-p.done
}
