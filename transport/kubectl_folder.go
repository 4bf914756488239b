package transport

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	socketFolderPrefix = "anykind-kubectl-"
	// socketFolderAge is how old a folder must be to count as left behind: a younger one may not have its lock yet.
	socketFolderAge = time.Minute
)

// socketFolder holds kubectl's socket, and a lock that this process has as long as it lives. Nobody else may enter it.
type socketFolder struct {
	path string
	lock *os.File
}

func newSocketFolder() (*socketFolder, error) {
	path, err := os.MkdirTemp("", socketFolderPrefix)
	if err != nil {
		return nil, err
	}
	f := &socketFolder{path: path}
	if f.lock, err = os.OpenFile(f.lockPath(), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = tryLock(f.lock)
	}
	if err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

func (f *socketFolder) lockPath() string { return filepath.Join(f.path, "lock") }

func (f *socketFolder) socket() string { return filepath.Join(f.path, "socket") }

// argument is that of kubectl proxy which names the socket. The folder's name is random, so that it tells this kubectl
// from all others.
func (f *socketFolder) argument() string { return "--unix-socket=" + f.socket() }

// killServers kills the processes that were started with argument: kubectl, and wrappers around it.
func (f *socketFolder) killServers() { killProcesses(f.argument()) }

func (f *socketFolder) remove() {
	_ = os.RemoveAll(f.path)
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// sweepSocketFolders removes the folders that killed programs left in dir, and ends their kubectls. What it cannot remove
// stays.
func sweepSocketFolders(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, socketFolderPrefix+"*")) // the pattern is well-formed
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !isPrivate(info) || time.Since(info.ModTime()) < socketFolderAge {
			continue
		}
		f := &socketFolder{path: path}
		f.lock, err = os.OpenFile(f.lockPath(), os.O_RDWR, 0)
		if err == nil && tryLock(f.lock) != nil {
			_ = f.lock.Close() // its owner lives
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f.killServers()
		f.remove()
	}
}
