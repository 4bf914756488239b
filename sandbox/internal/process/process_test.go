//go:build unix

package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

// parentEnv makes the test binary the parent of a family that owns the folder it
// names, until it is killed.
const parentEnv = "PROCESS_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		playParent(strings.TrimSuffix(dir, "-")) // "-" alone: no folder
	}
	os.Exit(m.Run())
}

func playParent(dir string) {
	family, err := NewFamily(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cmd := exec.Command("/bin/sh", "-c", "sleep 60 & echo $$ $!; wait")
	cmd.Stdout = os.Stdout
	if _, err := family.Start(cmd); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	time.Sleep(time.Minute)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 5 s: not %s", what)
		}
	}
}

func newFamily(t *testing.T, dir string) *Family {
	t.Helper()
	family, err := NewFamily(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = family.Close() })
	return family
}

// startFamilyShell starts a shell with a child of its own and returns both pids.
func startFamilyShell(t *testing.T, family *Family, script string) (p *Process, grandchild int) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout = out
	if p, err = family.Start(cmd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "started", func() bool {
		text, _ := os.ReadFile(out.Name())
		grandchild, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return p, grandchild
}

func TestFamily_CloseEndsGrandchildrenAndFolder(t *testing.T) {
	dir := t.TempDir()
	family := newFamily(t, dir)
	p, grandchild := startFamilyShell(t, family, "trap '' TERM INT; sleep 60 & echo $!; wait")
	if err := family.Close(); err != nil {
		t.Fatal(err)
	}
	if leftovers.Alive(p.Pid()) {
		t.Error("the child lives")
	}
	eventually(t, "without the grandchild", func() bool { return !leftovers.Alive(grandchild) })
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := family.Start(exec.Command("true")); !errors.Is(err, errClosed) {
		t.Errorf("Start after Close: %v", err)
	}
	if err := family.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestFamily_EndsWithParent(t *testing.T) {
	for _, withFolder := range []bool{true, false} {
		t.Run(fmt.Sprintf("folder=%t", withFolder), func(t *testing.T) {
			dir := ""
			if withFolder {
				dir = filepath.Join(t.TempDir(), "owned")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentEnv+"="+dir+"-")
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			// The child may write before the parent has registered it with the watchdog: a parent that is killed in between
			// takes the child along, but not what the child has begun in those microseconds.
			var child, grandchild int
			started := false
			for lines := bufio.NewScanner(out); (!started || child == 0) && lines.Scan(); {
				if lines.Text() == "started" {
					started = true
				} else if _, err := fmt.Sscan(lines.Text(), &child, &grandchild); err != nil {
					t.Fatalf("the parent said %q: %v", lines.Text(), err)
				}
			}
			_ = parent.Process.Kill()
			_ = parent.Wait()
			eventually(t, "without the child", func() bool { return !leftovers.Alive(child) })
			eventually(t, "without the grandchild", func() bool { return !leftovers.Alive(grandchild) })
			if withFolder {
				eventually(t, "without the folder", func() bool {
					_, err := os.Stat(dir)
					return errors.Is(err, os.ErrNotExist)
				})
			}
		})
	}
}

func TestProcess_ExitEndsGroup(t *testing.T) {
	p, grandchild := startFamilyShell(t, newFamily(t, ""), "sleep 60 & echo $!; exit 3")
	var exit *exec.ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ended with %v, want exit code 3", err)
	}
	eventually(t, "without the grandchild", func() bool { return !leftovers.Alive(grandchild) })
}

func TestProcess_StopKillsAfterGrace(t *testing.T) {
	family := newFamily(t, "")
	deaf, _ := startFamilyShell(t, family, "trap '' TERM; sleep 60 & echo $!; wait; sleep 60")
	began := time.Now()
	deaf.Stop(t.Context(), syscall.SIGTERM, 300*time.Millisecond)
	if took := time.Since(began); took < 300*time.Millisecond || took > 3*time.Second {
		t.Errorf("Stop took %s", took)
	}
	polite, _ := startFamilyShell(t, family, "trap 'exit 0' TERM; sleep 60 & echo $!; wait")
	polite.Stop(t.Context(), syscall.SIGTERM, time.Minute)
	if err := polite.Err(); err != nil {
		t.Errorf("asked to end, it ended with %v", err)
	}
}

func TestFamily_StartErrorNamesProgram(t *testing.T) {
	_, err := newFamily(t, "").Start(exec.Command("/no/such/program"))
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("Start: %v", err)
	}
}
