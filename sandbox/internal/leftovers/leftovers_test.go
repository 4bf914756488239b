//go:build unix

package leftovers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakePs prints what the ps of macOS does, where many a Linux has none.
const fakePs = `#!/bin/sh
[ "$*" = "-axww -o pid=,stat=,args=" ] || exit 1
cat <<.
    1 Ss   /sbin/launchd
  715 S+   /bin/etcd --data-dir=/tmp/a b
  716 Z    (etcd)
.
`

func TestPsProcesses_OmitsZombies(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ps"), []byte(fakePs), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	all, err := psProcesses()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 /sbin/launchd", "715 /bin/etcd --data-dir=/tmp/a b"}; !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}

func TestCheck_FindsProcessByFolder(t *testing.T) {
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
