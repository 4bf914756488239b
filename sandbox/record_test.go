//go:build unix

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/internal/filelock"
)

func TestRecordFolder_LockWaitsForReaders(t *testing.T) {
	records := recordFolder(t.TempDir())
	reader, err := filelock.Try(records.supervisorLock())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(maxReadTime/10, reader.Unlock)
	lock, err := records.takeSupervisorLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
}

func TestRecordFolder_ReadIgnoresStaleRecord(t *testing.T) {
	records := recordFolder(t.TempDir())
	if err := records.write(&record{Pid: 1, Dir: "/gone"}); err != nil {
		t.Fatal(err)
	}
	if r, err := records.read(); r != nil || !errors.Is(err, errNotRunning) {
		t.Errorf("got %+v, %v", r, err)
	}
}
