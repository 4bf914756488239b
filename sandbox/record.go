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

	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/filelock"
	"github.com/anykind/anykind/sandbox/sandbox"
)

// defaultName is the background cluster's name unless one is chosen.
const defaultName = "default"

// record is what is known of a background cluster. Its supervisor holds a lock
// as long as it lives, so a record without one is stale.
type record struct {
	Pid     int              `json:"pid"`
	Dir     string           `json:"dir"`
	Kubectl string           `json:"kubectl,omitempty"`
	Options *sandbox.Options `json:"options"`
	Started time.Time        `json:"started"`
}

// errNotRunning is what read answers when there is no such cluster.
var errNotRunning = errors.New("no sandbox is running")

// recordFolder is the folder of the cluster called name, in the cache.
type recordFolder string

var clusterName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)

func openRecords(cacheDir, name string) (recordFolder, error) {
	if !clusterName.MatchString(name) {
		return "", fmt.Errorf("--name %q: want letters, digits, dots and dashes", name)
	}
	cache, err := build.OpenCache(cacheDir)
	if err != nil {
		return "", err
	}
	return recordFolder(filepath.Join(cache.Dir, "run", name)), nil
}

// supervisorLock is held by the cluster's supervisor.
func (f recordFolder) supervisorLock() string { return filepath.Join(string(f), "supervisor.lock") }

// upLock is held by whoever starts or stops the cluster.
func (f recordFolder) upLock() string { return filepath.Join(string(f), "up.lock") }

// log gets the supervisor's output.
func (f recordFolder) log() string { return filepath.Join(string(f), "supervisor.log") }

func (f recordFolder) file() string { return filepath.Join(string(f), "cluster.json") }

// unfinished is the record while it is written.
func (f recordFolder) unfinished() string { return f.file() + ".new" }

// read returns the record of the running cluster, or errNotRunning. It changes
// nothing in the folder.
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
		return nil, fmt.Errorf("reading the record of the running sandbox: %w", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading the record of the running sandbox: %w", err)
	}
	return &r, nil
}

// readTime is how long processes that read the record may keep the supervisor's lock
// from others.
const readTime = 2 * time.Second

// takeSupervisorLock takes the lock, which no supervisor may hold.
func (f recordFolder) takeSupervisorLock(ctx context.Context) (*filelock.Lock, error) {
	waitCtx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	lock, err := filelock.Wait(waitCtx, f.supervisorLock(), nil)
	if err != nil && waitCtx.Err() != nil && ctx.Err() == nil {
		return nil, errors.New("another sandbox of this name is starting or running; try again")
	}
	return lock, err
}

// remove removes the folder of a cluster that does not run, and gives back its up
// lock, which the caller holds: without it no supervisor is started.
func (f recordFolder) remove(ctx context.Context, upLock *filelock.Lock) error {
	supervisorLock, err := f.takeSupervisorLock(ctx)
	if err != nil {
		upLock.Unlock()
		return err
	}
	err = errors.Join(f.removeStale(), removeFile(f.log()))
	err = errors.Join(err, supervisorLock.Remove(), upLock.Remove())
	_ = os.Remove(string(f)) // unless another process is at work in it again
	return err
}

// removeStale removes the record of a cluster that does not run.
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

// write replaces the record at once, so that nobody reads half of it.
func (f recordFolder) write(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.unfinished(), text, 0o600); err != nil {
		return fmt.Errorf("recording the running sandbox: %w", err)
	}
	return os.Rename(f.unfinished(), f.file())
}
