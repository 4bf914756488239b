//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/internal/filelock"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

// downTimeout is how long a supervisor may take to clean up before it is killed,
// after which its watchdog does.
const downTimeout = 20 * time.Second

func down(ctx context.Context, args []string) error {
	flags := newFlags("down", "[--name NAME]", "Takes the background cluster down and removes everything of it.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	records, err := openRecords("", *name)
	if err != nil {
		return err
	}
	report := progress.New(os.Stderr)
	lock, err := filelock.Wait(ctx, records.upLock(), func() {
		report.Say("sandbox %q is being started or stopped by another process; waiting for it", *name)
	})
	if err != nil {
		return err
	}
	running, err := records.read()
	switch {
	case err == nil:
		err = takeDown(ctx, running, records)
	case errors.Is(err, errNotRunning):
		report.Say("sandbox %q is not running", *name)
		err = nil
	}
	if err != nil {
		lock.Unlock()
		return err
	}
	return records.remove(ctx, lock)
}

// takeDown tells the supervisor to end and waits until it and the cluster's
// folder are gone.
func takeDown(ctx context.Context, running *record, records recordFolder) error {
	_ = syscall.Kill(running.Pid, syscall.SIGTERM)
	waitCtx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	lock, err := filelock.Wait(waitCtx, records.supervisorLock(), nil)
	if err != nil && ctx.Err() == nil {
		_ = syscall.Kill(running.Pid, syscall.SIGKILL)
		lock, err = filelock.Wait(ctx, records.supervisorLock(), nil)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	for try := 0; try < 50; try++ { // after a kill, the watchdog takes a moment
		if _, err := os.Stat(running.Dir); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the sandbox is down, but its folder %s is still there; remove it", running.Dir)
}
