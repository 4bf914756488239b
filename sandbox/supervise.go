//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/cluster"
)

// superviseCommand is the internal command used by up to run this program in the background.
const superviseCommand = "supervise"

// readyFile is the descriptor on which the supervisor writes "ok" or an error to up.
const readyFile = 3

// supervise starts a cluster and runs it until a signal. args are the folder of its
// record and its options in JSON.
func supervise(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s is an internal command of `up`", superviseCommand)
	}
	// Otherwise components would inherit it, and up would wait until they exit.
	syscall.CloseOnExec(readyFile)
	ready := os.NewFile(readyFile, "ready")
	err := superviseCluster(ctx, recordFolder(args[0]), args[1], func() {
		fmt.Fprint(ready, "ok")
		_ = ready.Close()
	})
	if err != nil {
		fmt.Fprint(ready, err) // closed once ready: then the error is only logged
	}
	return err
}

func superviseCluster(ctx context.Context, records recordFolder, optionsJSON string, ready func()) error {
	var opts cluster.Options
	if err := json.Unmarshal([]byte(optionsJSON), &opts); err != nil {
		return fmt.Errorf("decode options: %w", err)
	}
	lock, err := records.takeSupervisorLock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	opts.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := cluster.Start(ctx, &opts)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(records.file()) }() // without the lock it would be stale
	stop := func() error { return c.Stop(context.WithoutCancel(ctx)) }
	opts.Log = nil
	err = records.write(&record{Pid: os.Getpid(), Dir: c.Dir, Kubectl: c.Kubectl, Options: &opts, Started: time.Now()})
	if err != nil {
		return errors.Join(err, stop())
	}
	ready()
	select {
	case <-ctx.Done():
	case <-c.Done():
		// status shows a dead component, and restart starts it again.
		fmt.Fprintln(os.Stderr, c.Err())
		<-ctx.Done()
	}
	return stop()
}
