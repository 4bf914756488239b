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

	"github.com/anykind/anykind/sandbox/internal/filelock"
	"github.com/anykind/anykind/sandbox/internal/progress"
	"github.com/anykind/anykind/sandbox/sandbox"
)

const upText = `Starts a cluster in the background, waits until it is ready and says how to use
it. When it runs already with the same flags, only says so.`

func up(ctx context.Context, args []string) error {
	var opts sandbox.Options
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

// ensureUp returns the background cluster called name, starting it if it does not
// run. A cluster that runs with other options is an error.
func ensureUp(ctx context.Context, name string, opts *sandbox.Options) (*record, error) {
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
		report.Say("sandbox %q is being started or stopped by another process; waiting for it", name)
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
		report.Say("sandbox %q is running already", name)
		return running, nil
	case !errors.Is(err, errNotRunning):
		return nil, err
	}
	// Built here, where progress is seen and Ctrl-C heard.
	complete.Progress = os.Stderr
	if err := sandbox.Build(ctx, complete); err != nil {
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

func sameOptions(name string, running, wanted *sandbox.Options) error {
	a, err := json.Marshal(running)
	if err != nil {
		return err
	}
	b, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("sandbox %q is running with other options:\n  running: %s\n  asked:   %s\ntake it down first (go run -C sandbox . down --name %s), or start another with --name", name, a, b, name)
	}
	return nil
}

// startSupervisor runs this program again in a session of its own and waits
// until it says that the cluster is ready.
func startSupervisor(ctx context.Context, records recordFolder, opts *sandbox.Options) error {
	optionsJSON, err := json.Marshal(opts)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to run it in the background: %w", err)
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
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return fmt.Errorf("starting the sandbox's supervisor: %w", err)
	}
	return awaitSupervisor(ctx, cmd, read, records)
}

func awaitSupervisor(ctx context.Context, cmd *exec.Cmd, ready io.Reader, records recordFolder) error {
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(ready)
		said <- string(text)
	}()
	select {
	case text := <-said:
		if text == "ok" {
			return cmd.Process.Release()
		}
		_ = cmd.Wait()
		if text == "" {
			return fmt.Errorf("the supervisor ended at once (%s); see its log, %s", cmd.ProcessState, records.log())
		}
		return errors.New(text)
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		return ctx.Err()
	}
}
