//go:build unix

package cluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// noise follows a fatal line: more lines than the tail has.
var noise = strings.Repeat("goroutine 1 [running]:\n", 2*tailLines)

func TestExcerpt_FirstFatalLine(t *testing.T) {
	const start = "I1122 02:28:46.1 1 server.go:1] starting\n" +
		"E1122 02:28:47.391524    7498 options.go:205] The manifest file is empty, ignoring.\n"
	for name, cause := range map[string]string{
		"none":           "",
		"full disk":      `{"level":"error","caller":"wal/file_pipeline.go:82","msg":"failed to preallocate","error":"no space left on device"}`,
		"quota":          "write /tmp/x: disk quota exceeded",
		"panic":          "panic: runtime error: index out of range [3] with length 3",
		"runtime":        "fatal error: all goroutines are asleep - deadlock!",
		"klog fatal":     `F1122 02:28:47.391524    7498 hooks.go:204] PostStartHook "x" failed: timed out`,
		"command failed": `E1122 02:28:47.391524    7498 run.go:72] "command failed" err="open ca.crt: no such file or directory"`,
		"JSON fatal":     `{"level":"fatal","caller":"etcdmain/etcd.go:183","msg":"discovery failed","error":"listen tcp"}`,
		"JSON panic":     `{"level":"panic","msg":"failed to recover v3 backend from snapshot"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := excerpt(strings.NewReader(start + cause + "\n" + noise + "panic: a later one\n" + noise))
			want := cause
			if cause == "" {
				want = "panic: a later one"
			}
			if got.cause != want {
				t.Errorf("the cause is %q, want %q", got.cause, want)
			}
			if text := got.String(); !strings.HasPrefix(text, "the cause by its log:\n    "+want+"\nthe last lines of its log:\n    goroutine") {
				t.Errorf("it is shown as\n%s", text)
			}
		})
	}
	if got := excerpt(strings.NewReader(start + noise)); got.cause != "" {
		t.Errorf("the cause is %q, where none is in the log", got.cause)
	}
}

func TestExcerpt_LastLines(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "(it wrote nothing)"},
		"short": {"one\ntwo\n", "one\ntwo"},
		"long":  {strings.Repeat("line\n", 50000) + "last", strings.Repeat("line\n", tailLines-1) + "last"},
	} {
		if got := excerpt(strings.NewReader(c.text)); got.tail != c.want {
			t.Errorf("%s: %q", name, got.tail)
		}
	}
	broken := io.MultiReader(strings.NewReader("one\n"), iotest.ErrReader(errors.New("I/O error")))
	if got := excerpt(broken); got.tail != "one\n(the log ends here: I/O error)" {
		t.Errorf("of a log that cannot be read to its end: %q", got.tail)
	}
}

func TestLogExcerpt_StringIsShort(t *testing.T) {
	long := "panic: " + strings.Repeat("ü", maxLineLength)
	text := excerpt(strings.NewReader(long + "\nend\n")).String()
	if strings.Count(text, "panic:") != 1 || strings.Contains(text, "the cause") {
		t.Errorf("a cause at the top of the last lines is shown as\n%s", text)
	}
	if len(text) > maxLineLength+100 || strings.Contains(text, "\ufffd") || !strings.HasSuffix(text, "ü…\n    end") {
		t.Errorf("a long line is shown as\n%s", text)
	}
}

func TestReadLogExcerpt_FromOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const before = "panic: of the process before\n"
	if err := os.WriteFile(path, []byte(before+"its own line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readLogExcerpt(path, int64(len(before))); got.cause != "" || got.tail != "its own line" {
		t.Errorf("got %+v", got)
	}
	if got := readLogExcerpt(path+"x", 0); !strings.Contains(got.tail, "no log") {
		t.Errorf("a missing log is shown as %q", got.tail)
	}
}

func TestDiedError_FullDisk(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/tmp/x", Err: syscall.ENOSPC}
	err := &DiedError{Component: "etcd", Reason: errors.New("exit status 1"), Disk: diskFullError(full), LogTail: "cut o"}
	want := "etcd died (exit status 1); the disk is full (write /tmp/x: no space left on device); the last lines of its log:\n    cut o"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	for _, other := range []error{nil, syscall.EIO, os.ErrPermission} {
		if diskFullError(other) != nil {
			t.Errorf("%v counts as a full disk", other)
		}
	}
	dir := t.TempDir()
	if err := checkDisk(dir); err != nil {
		t.Errorf("a disk with space: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it left %s", left)
	}
}
