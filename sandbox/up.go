//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/filelock"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

const upText = `Starts a cluster in the background, waits until it is ready and prints how to use
it. Does nothing if it is running with the same flags.`

func up(ctx context.Context, args []string) error {
	var opts cluster.Options
	flags := newFlags("up", "[flags]", upText)
	clusterFlags(flags, &opts)
	name := flags.String("name", defaultName, "`name` of the cluster; several may run")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	running, err := ensureUp(ctx, *name, &opts)
	if err != nil {
		return err
	}
	again := ""
	if *name != defaultName {
		again = " --name " + *name
	}
	path := ""
	if running.Kubectl != "" {
		path = fmt.Sprintf("  export PATH=%s:$PATH  # kubectl of this version\n", filepath.Dir(running.Kubectl))
	}
	fmt.Printf(`The sandbox is up: Kubernetes %s.

  export KUBECONFIG=%s
%s
Contexts: admin (current), token, limited. Take it down with:

  go run -C sandbox . down%s
`, running.Options.KubernetesVersion, filepath.Join(running.Dir, "kubeconfig"), path, again)
	return nil
}

// ensureUp returns the background cluster called name, and starts it if needed. A running cluster with different options is an
// error.
func ensureUp(ctx context.Context, name string, opts *cluster.Options) (*record, error) {
	complete, err := opts.Complete()
	if err != nil {
		return nil, err
	}
	records, err := openRecords(complete.CacheDir, name)
	if err != nil {
		return nil, err
	}
	report := progress.New(os.Stderr)
	lock, err := filelock.Wait(ctx, records.upLock(), func() {
		report.Printf("sandbox %q is being started or stopped by another process; waiting for it", name)
	})
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	running, err := records.read()
	switch {
	case err == nil:
		if err := sameOptions(name, running.Options, complete); err != nil {
			return nil, err
		}
		report.Printf("sandbox %q is running already", name)
		return running, nil
	case !errors.Is(err, errNotRunning):
		return nil, err
	}
	// Build in the foreground, with progress and Ctrl-C.
	complete.Progress = os.Stderr
	if err := cluster.Build(ctx, complete); err != nil {
		return nil, err
	}
	complete.Progress = nil
	step := report.Begin("starting sandbox %q in the background", name)
	err = startSupervisor(ctx, records, complete)
	step.End(err)
	if err != nil {
		return nil, err
	}
	return records.read()
}

func sameOptions(name string, running, wanted *cluster.Options) error {
	a, err := json.Marshal(running)
	if err != nil {
		return err
	}
	b, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("sandbox %q is running with other options:\n  running: %s\n  asked:   %s\n(take it down first: go run -C sandbox . down --name %s; or start another with --name)", name, a, b, name)
	}
	return nil
}

// startSupervisor runs this program again in its own session and waits for its ready message.
func startSupervisor(ctx context.Context, records recordFolder, opts *cluster.Options) error {
	optionsJSON, err := json.Marshal(opts)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it in the background: %w", err)
	}
	if err := records.removeStale(); err != nil {
		return err
	}
	log, err := os.Create(records.log())
	if err != nil {
		return err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := exec.Command(self, superviseCommand, string(records), string(optionsJSON))
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	return awaitSupervisor(ctx, cmd, read, records)
}

func awaitSupervisor(ctx context.Context, cmd *exec.Cmd, ready io.Reader, records recordFolder) error {
	result := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(ready)
		result <- string(text)
	}()
	select {
	case text := <-result:
		if text == "ok" {
			return cmd.Process.Release()
		}
		_ = cmd.Wait()
		if text == "" {
			return fmt.Errorf("supervisor exited: %s (see its log, %s)", cmd.ProcessState, records.log())
		}
		return errors.New(text)
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		return ctx.Err()
	}
}

// downTimeout limits the time for a supervisor to clean up. Then it is killed, and its watchdog cleans up.
const downTimeout = 20 * time.Second

func down(ctx context.Context, args []string) error {
	flags := newFlags("down", "[--name NAME]", "Stops the background cluster and removes its files.")
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
		report.Printf("sandbox %q is being started or stopped by another process; waiting for it", *name)
	})
	if err != nil {
		return err
	}
	running, err := records.read()
	switch {
	case err == nil:
		err = takeDown(ctx, running, records)
	case errors.Is(err, errNotRunning):
		report.Printf("sandbox %q is not running", *name)
		err = nil
	}
	if err != nil {
		lock.Unlock()
		return err
	}
	return records.remove(ctx, lock)
}

// takeDown stops the supervisor and waits until it has exited and the cluster's folder
// is removed.
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
	return fmt.Errorf("sandbox is down, but its folder still exists (remove %s)", running.Dir)
}
