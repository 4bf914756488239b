//go:build unix

// Package leftovers fails a test suite that leaves a process or a folder of a cluster
// behind.
package leftovers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exitTimeout bounds the wait for processes that are exiting.
const exitTimeout = 5 * time.Second

// Run runs the tests with a separate temporary folder for all their clusters, and returns the exit code.
func Run(m *testing.M) int {
	// Short, because the path of a unix socket must be short.
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

// Check returns an error if processes or folders of the tests' clusters remain.
func Check() error { return check(exitTimeout) }

func check(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(100 * time.Millisecond) {
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

// Processes returns the processes with text in their command line, such as the path of a cluster's folder. A line is a pid and
// the command line.
func Processes(text string) ([]string, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []string
	for _, line := range all {
		if strings.Contains(line, text) {
			found = append(found, fmt.Sprintf("%.200s", line))
		}
	}
	return found, nil
}

// Alive reports whether process pid is running. A zombie is not.
func Alive(pid int) bool {
	all, err := processes()
	if err != nil {
		return true // unknown
	}
	for _, line := range all {
		if strings.HasPrefix(strings.TrimSpace(line), strconv.Itoa(pid)+" ") {
			return true
		}
	}
	return false
}

// processes returns every process but zombies. Small Linux systems have no ps, and macOS and BSD have no /proc.
func processes() ([]string, error) {
	commandLines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	if len(commandLines) == 0 {
		return psProcesses()
	}
	var all []string
	for _, path := range commandLines {
		text, _ := os.ReadFile(path) // empty for a zombie
		if len(text) > 0 {
			pid := filepath.Base(filepath.Dir(path))
			all = append(all, pid+" "+string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return all, nil
}

func psProcesses() ([]string, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.SplitSeq(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") {
			all = append(all, fields[0]+" "+strings.Join(fields[2:], " "))
		}
	}
	return all, nil
}
