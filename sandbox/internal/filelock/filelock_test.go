//go:build unix

package filelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// holdEnv makes the test binary hold the lock it names until it is killed.
const holdEnv = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		if _, err := Try(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

// holdElsewhere has another process hold the lock on path; release kills it.
func holdElsewhere(t *testing.T, path string) (release func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(release)
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process said %q", line)
	}
	return release
}

func TestTry_UntilHolderDies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "lock")
	release := holdElsewhere(t, path)
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("Try: %v, want ErrHeld", err)
	}
	release() // with SIGKILL
	lock, err := Try(path)
	if err != nil {
		t.Fatalf("the dead process still holds the lock: %v", err)
	}
	lock.Unlock()
}

func TestIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	check := func(want bool) {
		t.Helper()
		if held, err := IsHeld(path); held != want || err != nil {
			t.Errorf("IsHeld: %t, %v, want %t", held, err, want)
		}
	}
	check(false)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it created the file: %v", err)
	}
	release := holdElsewhere(t, path)
	check(true)
	release()
	check(false)
	lock, err := Try(path)
	if err != nil {
		t.Fatalf("IsHeld still has the lock: %v", err)
	}
	check(true)
	lock.Unlock()
}

func TestTryOpen_RemovedFile(t *testing.T) {
	for name, replace := range map[string]bool{"removed": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			first, err := Try(path)
			if err != nil {
				t.Fatal(err)
			}
			// Another process has opened the file and not asked for the lock yet.
			opened, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if err := first.Remove(); err != nil {
				t.Fatal(err)
			}
			if replace {
				second, err := Try(path)
				if err != nil {
					t.Fatal(err)
				}
				defer second.Unlock()
			}
			if err := tryOpen(opened); !errors.Is(err, errRemoved) {
				t.Errorf("tryOpen: %v, want that the file was removed", err)
			}
		})
	}
}

// TestLock_RemoveKeepsExclusion has many contend for one lock, of whom some
// remove its file and some its folder.
func TestLock_RemoveKeepsExclusion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "lock")
	var all sync.WaitGroup
	var holders, sections atomic.Int32
	for worker := range 8 {
		all.Go(func() {
			for turn := 0; turn < 300; {
				lock, err := Try(path)
				if errors.Is(err, ErrHeld) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock at once", n)
				}
				runtime.Gosched()
				sections.Add(1)
				holders.Add(-1)
				if turn++; worker%2 == 0 {
					lock.Unlock()
					continue
				}
				if err := lock.Remove(); err != nil {
					t.Errorf("removing: %v", err)
				}
				_ = os.Remove(filepath.Dir(path))
			}
		})
	}
	all.Wait()
	if n := sections.Load(); n != 8*300 {
		t.Errorf("the lock was held %d times", n)
	}
}

func TestWait_CallsOnWaitOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release := holdElsewhere(t, path)
	waits := 0
	lock, err := Wait(t.Context(), path, func() {
		waits++
		time.AfterFunc(3*pollInterval, release)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if waits != 1 {
		t.Errorf("it said %d times that it waits", waits)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("Try: %v, want ErrHeld", err)
	}
}

func TestWait_EndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holdElsewhere(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 2*pollInterval)
	defer cancel()
	if _, err := Wait(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v", err)
	}
}

func TestTry_ErrorNamesPath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Try(filepath.Join(file, "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("Try below a file: %v", err)
	}
}
