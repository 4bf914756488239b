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
	"sync"
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

func TestALockKeepsAnotherProcessOutUntilItsHolderDies(t *testing.T) {
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

func TestWaitSaysSoOnceAndTakesTheLockWhenItIsFree(t *testing.T) {
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

func TestWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holdElsewhere(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 2*pollInterval)
	defer cancel()
	if _, err := Wait(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v", err)
	}
}

func TestALockThatCannotBeOpenedNamesItsPath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Try(filepath.Join(file, "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("Try below a file: %v", err)
	}
}
