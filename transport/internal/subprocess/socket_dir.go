// Package subprocess runs programs that must not outlive the request or the process that started them, on each operating
// system as far as that can.
//
//   - [KillGroup] on Unix, and [EndWithThread] on Linux, end a command's processes with its ctx and with this process.
//   - A [SocketDir] holds a program's Unix socket and a lock that this process has as long as it lives. Its random name is an
//     argument of the program, so that processes left behind are found by it: [SweepSocketDirs] kills them and removes the
//     directories whose lock is free.
//
// Invariants: only directories of this user with mode 0700 are swept, and only those older than a minute, as a younger one
// may not have its lock yet. Where the system has no file locks nothing is swept.
package subprocess

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	socketDirPrefix = "anykind-kubectl-"
	minSweepAge     = time.Minute
)

// SocketDir is a directory that no other user may enter.
type SocketDir struct {
	path string
	lock *os.File
}

// NewSocketDir creates a directory in the system's temporary one, and locks it.
func NewSocketDir() (*SocketDir, error) {
	path, err := os.MkdirTemp("", socketDirPrefix)
	if err != nil {
		return nil, err
	}
	d := &SocketDir{path: path}
	if d.lock, err = os.OpenFile(d.lockPath(), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = tryLock(d.lock)
	}
	if err != nil {
		d.Remove()
		return nil, err
	}
	return d, nil
}

func (d *SocketDir) lockPath() string { return filepath.Join(d.path, "lock") }

// Socket returns the path of the socket.
func (d *SocketDir) Socket() string { return filepath.Join(d.path, "socket") }

// Argument returns kubectl proxy's argument for the socket.
func (d *SocketDir) Argument() string { return "--unix-socket=" + d.Socket() }

// KillServers kills the processes that were started with Argument: kubectl, and wrappers around it.
func (d *SocketDir) KillServers() { killProcesses(d.Argument()) }

// Remove removes the directory and releases its lock.
func (d *SocketDir) Remove() {
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// SweepSocketDirs removes the directories that killed processes left behind, and kills their servers. What it cannot remove
// stays.
func SweepSocketDirs() {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), socketDirPrefix+"*")) // the pattern is well-formed
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !isPrivate(info) || time.Since(info.ModTime()) < minSweepAge {
			continue
		}
		d := &SocketDir{path: path}
		d.lock, err = os.OpenFile(d.lockPath(), os.O_RDWR, 0)
		if err == nil && tryLock(d.lock) != nil {
			_ = d.lock.Close() // its owner lives
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		d.KillServers()
		d.Remove()
	}
}
