//go:build unix

// Package process starts child processes that cannot outlive their parent,
// however the parent ends.
//
// Three mechanisms ensure that. Every child leads a process group, so that its own
// children are killed with it. On Linux, the kernel kills the child when the thread
// that forked it ends. And a small shell, the watchdog, reads from a pipe that closes
// when the parent ends, even by kill -9; then it kills the remaining processes and
// removes the family's folder.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Family is a set of processes and a folder with a common end: Close or the death of this process. Its methods are safe for
// concurrent use.
type Family struct {
	dir      string
	watchdog *watchdog
	forks    chan func()
	closing  chan struct{}
	forker   chan struct{}

	mu      sync.Mutex
	members map[*Process]struct{}
	closed  bool
}

// NewFamily returns a family owning dir. The folder is removed with the last process; "" means no folder. The caller must call
// Close.
func NewFamily(dir string) (*Family, error) {
	w, err := newWatchdog(dir)
	if err != nil {
		return nil, err
	}
	f := &Family{
		dir: dir, watchdog: w,
		forks: make(chan func()), closing: make(chan struct{}), forker: make(chan struct{}),
		members: map[*Process]struct{}{},
	}
	go f.forkOnOneThread()
	return f, nil
}

// errClosed is returned by Start after Close.
var errClosed = errors.New("the process family is closed")

// Start runs cmd in its own process group and extends its SysProcAttr for that. Its
// output must be a file or nil: copying from a pipe would not end with the process.
func (f *Family) Start(cmd *exec.Cmd) (*Process, error) {
	var (
		p   *Process
		err error
	)
	done := make(chan struct{})
	fork := func() {
		defer close(done)
		p, err = f.fork(cmd)
	}
	select {
	case f.forks <- fork:
		<-done
		return p, err
	case <-f.closing:
		return nil, errClosed
	}
}

func (f *Family) fork(cmd *exec.Cmd) (*Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	f.members[p] = struct{}{}
	f.watchdog.add(p.Pid())
	go f.wait(p)
	return p, nil
}

func (f *Family) wait(p *Process) {
	err := p.cmd.Wait()
	// The rest of its group must end, too.
	p.Kill()
	f.mu.Lock()
	delete(f.members, p)
	f.watchdog.del(p.Pid())
	f.mu.Unlock()
	p.err = err
	close(p.done)
}

// Close kills every process with SIGKILL, waits for their end and removes the
// folder. It may be called more than once.
func (f *Family) Close() error {
	f.mu.Lock()
	first := !f.closed
	f.closed = true
	members := make([]*Process, 0, len(f.members))
	for p := range f.members {
		members = append(members, p)
	}
	f.mu.Unlock()
	if first {
		close(f.closing)
	}
	for _, p := range members {
		p.Kill()
	}
	for _, p := range members {
		<-p.done
	}
	<-f.forker
	defer f.watchdog.close()
	if f.dir == "" {
		return nil
	}
	return os.RemoveAll(f.dir)
}

// Process is a running child of a Family. Safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Pid returns the id of the process and of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed once the process has exited and its group is killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits until the process has exited and returns the error of exec.Cmd.Wait.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Kill sends SIGKILL to the process and its group.
func (p *Process) Kill() { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }

// Signal sends sig to the process and its group, unless it has exited.
func (p *Process) Signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.Pid(), sig)
	}
}

// Stop sends sig, and kills the process if it has not exited after grace or when ctx
// ends. It returns once the process has exited.
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

// forkOnOneThread runs every fork on a single thread until Close: Linux sends the parent-death signal when the forking thread
// ends, and Go may end idle threads.
func (f *Family) forkOnOneThread() {
	defer close(f.forker)
	// Never unlocked: the thread ends with this goroutine, after the children.
	runtime.LockOSThread()
	for {
		select {
		case fork := <-f.forks:
			fork()
		case <-f.closing:
			f.waitForMembers()
			return
		}
	}
}

func (f *Family) waitForMembers() {
	for {
		var p *Process
		f.mu.Lock()
		for p = range f.members {
			break
		}
		f.mu.Unlock()
		if p == nil {
			return
		}
		<-p.done
	}
}
