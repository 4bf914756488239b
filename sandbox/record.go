//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/filelock"
)

// defaultName is the default name of the background cluster.
const defaultName = "default"

// record describes a background cluster. Its supervisor holds a lock: a record without a held lock is stale.
type record struct {
	Pid     int              `json:"pid"`
	Dir     string           `json:"dir"`
	Kubectl string           `json:"kubectl,omitempty"`
	Options *cluster.Options `json:"options"`
	Started time.Time        `json:"started"`
}

// errNotRunning is returned by read for a missing cluster.
var errNotRunning = errors.New("no sandbox is running")

// recordFolder is a background cluster's folder in the cache: its record, locks and log.
type recordFolder string

var clusterName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)

func openRecords(cacheDir, name string) (recordFolder, error) {
	if !clusterName.MatchString(name) {
		return "", fmt.Errorf("--name %q: invalid (want letters, digits, dots and dashes)", name)
	}
	cache, err := build.OpenCache(cacheDir)
	if err != nil {
		return "", err
	}
	return recordFolder(filepath.Join(cache.Dir, "run", name)), nil
}

// supervisorLock is held by the cluster's supervisor.
func (f recordFolder) supervisorLock() string { return filepath.Join(string(f), "supervisor.lock") }

// upLock is held while the cluster is started or stopped.
func (f recordFolder) upLock() string { return filepath.Join(string(f), "up.lock") }

// log is the file of the supervisor's output.
func (f recordFolder) log() string { return filepath.Join(string(f), "supervisor.log") }

func (f recordFolder) file() string { return filepath.Join(string(f), "cluster.json") }

// unfinished is the record while it is being written.
func (f recordFolder) unfinished() string { return f.file() + ".new" }

// read returns the record of the running cluster, or errNotRunning. It writes
// nothing.
func (f recordFolder) read() (*record, error) {
	running, err := filelock.IsHeld(f.supervisorLock())
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, errNotRunning
	}
	text, err := os.ReadFile(f.file())
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNotRunning // it is still starting
	}
	if err != nil {
		return nil, fmt.Errorf("read record of the running sandbox: %w", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read record of the running sandbox: %w", err)
	}
	return &r, nil
}

// maxReadTime limits the time for which readers of the record may hold the supervisor's lock.
const maxReadTime = 2 * time.Second

// takeSupervisorLock takes the lock, or returns an error if a supervisor holds it.
func (f recordFolder) takeSupervisorLock(ctx context.Context) (*filelock.Lock, error) {
	waitCtx, cancel := context.WithTimeout(ctx, maxReadTime)
	defer cancel()
	lock, err := filelock.Wait(waitCtx, f.supervisorLock(), nil)
	if err != nil && waitCtx.Err() != nil && ctx.Err() == nil {
		return nil, errors.New("another sandbox of this name is starting or running (try again)")
	}
	return lock, err
}

// remove removes the folder of a stopped cluster, and releases its up lock. The caller holds the up lock: without it no
// supervisor can start.
func (f recordFolder) remove(ctx context.Context, upLock *filelock.Lock) error {
	supervisorLock, err := f.takeSupervisorLock(ctx)
	if err != nil {
		upLock.Unlock()
		return err
	}
	err = errors.Join(f.removeStale(), removeFile(f.log()))
	err = errors.Join(err, supervisorLock.Remove(), upLock.Remove())
	_ = os.Remove(string(f)) // unless it is used again
	return err
}

// removeStale removes the record of a stopped cluster.
func (f recordFolder) removeStale() error {
	return errors.Join(removeFile(f.file()), removeFile(f.unfinished()))
}

// removeFile removes a file, if there is one.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// write replaces the record atomically.
func (f recordFolder) write(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.unfinished(), text, 0o600); err != nil {
		return fmt.Errorf("write record of the running sandbox: %w", err)
	}
	return os.Rename(f.unfinished(), f.file())
}
