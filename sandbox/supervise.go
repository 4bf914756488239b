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

	"github.com/anykind/anykind/sandbox/sandbox"
)

// superviseCommand is the hidden command by which up runs this program again, in
// the background.
const superviseCommand = "supervise"

// readyFile is the descriptor on which the supervisor tells up how it went: "ok"
// or what failed.
const readyFile = 3

// supervise starts the cluster args describe (a folder of records and options in
// JSON) and keeps it until a signal comes.
func supervise(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s is for `up` to call", superviseCommand)
	}
	// Otherwise the components inherit it, and up waits for its end until they end.
	syscall.CloseOnExec(readyFile)
	ready := os.NewFile(readyFile, "ready")
	err := superviseCluster(ctx, recordFolder(args[0]), args[1], func() {
		fmt.Fprint(ready, "ok")
		_ = ready.Close()
	})
	if err != nil {
		fmt.Fprint(ready, err) // closed when it was ready: then only the log gets it
	}
	return err
}

func superviseCluster(ctx context.Context, records recordFolder, optionsJSON string, ready func()) error {
	var opts sandbox.Options
	if err := json.Unmarshal([]byte(optionsJSON), &opts); err != nil {
		return fmt.Errorf("reading the options: %w", err)
	}
	lock, err := records.takeSupervisorLock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	opts.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	cluster, err := sandbox.Start(ctx, &opts)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(records.file()) }() // without its lock a record is stale anyway
	stop := func() error { return cluster.Stop(context.WithoutCancel(ctx)) }
	opts.Log = nil
	err = records.write(&record{Pid: os.Getpid(), Dir: cluster.Dir, Kubectl: cluster.Kubectl, Options: &opts, Started: time.Now()})
	if err != nil {
		return errors.Join(err, stop())
	}
	ready()
	select {
	case <-ctx.Done():
	case <-cluster.Done():
		// One component less is for status to show and restart to mend.
		fmt.Fprintln(os.Stderr, cluster.Err())
		<-ctx.Done()
	}
	return stop()
}
