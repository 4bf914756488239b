// Package subprocess runs programs that must not outlive their request or this process. The means depend on the operating system.
//
//   - [KillGroup] on Unix, and [EndWithThread] on Linux, end a command's processes with its ctx and with this process.
//   - A [SocketDir] holds a program's Unix socket and a lock held during this process's lifetime. Its random name is an argument
//     of the program and identifies leftover processes: [SweepSocketDirs] kills them and removes unlocked directories.
//
// Invariants: only directories of this user with mode 0700 are swept, and only if they are older than a minute: a younger
// directory may not be locked yet. Without file locks nothing is swept.
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

// SocketDir is a private directory: only this user may enter it.
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

// KillServers kills the processes started with Argument: kubectl, and wrappers around it.
func (d *SocketDir) KillServers() { killProcesses(d.Argument()) }

// Remove removes the directory and releases its lock.
func (d *SocketDir) Remove() {
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// SweepSocketDirs removes the directories left behind by killed processes, and kills their servers. Directories that cannot be
// removed stay.
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
