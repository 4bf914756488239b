//go:build unix

package leftovers

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestProcessesAreFoundWithPsAsWell(t *testing.T) {
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("needs ps, as macOS has it")
	}
	all, err := psProcesses()
	if err != nil {
		t.Fatal(err)
	}
	self := strconv.Itoa(os.Getpid()) + " " + os.Args[0]
	if !slices.ContainsFunc(all, func(line string) bool { return strings.HasPrefix(line, self) }) {
		t.Errorf("%q is not among %d processes", self, len(all))
	}
}

func TestALeftProcessIsFoundByItsFolder(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", "read -r line", "sh", dir)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, err := Processes(dir)
	if err != nil || len(found) != 1 {
		t.Errorf("found %s, %v", found, err)
	}
	if !Alive(cmd.Process.Pid) {
		t.Error("it is not alive")
	}
	t.Setenv("TMPDIR", dir)
	if err := check(0); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Check with a process left: %v", err)
	}
	_ = pipe.Close()
	_ = cmd.Wait()
	if Alive(cmd.Process.Pid) {
		t.Error("it is alive after its end")
	}
	if err := Check(); err != nil {
		t.Errorf("Check with nothing left: %v", err)
	}
}
