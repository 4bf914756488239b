//go:build unix

package process

import "runtime"

// forkOnOneThread runs every fork on a single thread until Close: Linux ties a
// child's parent-death signal to the thread that forked it, and Go ends idle
// threads as it likes.
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
