//go:build unix

// Package process starts child processes that cannot outlive their parent,
// however the parent ends.
//
// Three things see to it: every child leads its own process group, so that its
// own children are found; on Linux the kernel kills the child when the thread
// that forked it ends; and a small shell, the watchdog, waits for the parent's
// end of a pipe to close, which happens even on kill -9, then kills what is
// left and removes the family's folder.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Family is a set of processes and a folder that end together, at Close or when
// this process dies. Its methods are safe for concurrent use.
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

// NewFamily returns a family that owns dir: the folder and everything in it are
// removed with the last process. With "" there is no folder. The caller must
// call Close.
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

// errClosed is what Start answers after Close.
var errClosed = errors.New("the sandbox is being taken down")

// Start runs cmd in its own process group, adding what that takes to cmd's
// SysProcAttr. Its output must go to files or nowhere, so that waiting for it
// ends with it.
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
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	f.members[p] = struct{}{}
	f.watchdog.add(p.Pid())
	go f.wait(p)
	return p, nil
}

func (f *Family) wait(p *Process) {
	err := p.cmd.Wait()
	// What the process left in its group must not live on either.
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
