//go:build unix

// Package leftovers fails a test suite that leaves a process or a folder of a
// cluster behind.
package leftovers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long what ends by itself may take to be gone.
const patience = 5 * time.Second

// Run runs the tests with a temporary folder of their own, in which all their
// clusters are, and returns the exit code.
func Run(m *testing.M) int {
	// Short, as a unix socket's path must be.
	temp, err := os.MkdirTemp("/tmp", "sandbox-test-")
	if err == nil {
		defer func() { _ = os.RemoveAll(temp) }()
		err = os.Setenv("TMPDIR", temp)
	}
	code := 1
	if err == nil {
		code = m.Run()
		err = Check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return code
}

// Check waits a moment for everything of the tests' clusters to be gone.
func Check() error { return check(patience) }

func check(patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		folders, _ := filepath.Glob(filepath.Join(os.TempDir(), "anykind-*"))
		processes, err := Processes(os.TempDir())
		if err != nil {
			return err
		}
		if len(folders)+len(processes) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("left behind by the tests: folders %s, processes\n%s", folders, strings.Join(processes, "\n"))
		}
	}
}
