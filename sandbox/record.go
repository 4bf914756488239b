//go:build unix

package main

import (
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

// errNotRunning is what readRecord answers when there is no such cluster.
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
	dir := filepath.Join(cache.Dir, "run", name)
	return recordFolder(dir), os.MkdirAll(dir, 0o700)
}

// supervisorLock is held by the cluster's supervisor.
func (f recordFolder) supervisorLock() string { return filepath.Join(string(f), "supervisor.lock") }

// upLock is held by whoever starts or stops the cluster.
func (f recordFolder) upLock() string { return filepath.Join(string(f), "up.lock") }

// log gets the supervisor's output.
func (f recordFolder) log() string { return filepath.Join(string(f), "supervisor.log") }

func (f recordFolder) file() string { return filepath.Join(string(f), "cluster.json") }

// read returns the record of the running cluster, or errNotRunning. A stale
// record is removed.
func (f recordFolder) read() (*record, error) {
	lock, err := filelock.Try(f.supervisorLock())
	if err == nil {
		_ = os.Remove(f.file())
		lock.Unlock()
		return nil, errNotRunning
	}
	if !errors.Is(err, filelock.ErrHeld) {
		return nil, err
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

// write replaces the record at once, so that nobody reads half of it.
func (f recordFolder) write(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	unfinished := f.file() + ".new"
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return fmt.Errorf("recording the running sandbox: %w", err)
	}
	return os.Rename(unfinished, f.file())
}
