//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/anykind/anykind/sandbox/sandbox"
)

// clusterDirEnv tells the command run by exec where its cluster's folder is.
const clusterDirEnv = "ANYKIND_SANDBOX"

const executeText = `Starts a cluster, runs COMMAND with KUBECONFIG and ANYKIND_SANDBOX (the cluster's
folder, with the file kubeconfig and the socket control.sock in it) set, takes the
cluster down and exits as COMMAND did. Signals are passed on to COMMAND.

COMMAND runs in $PWD: also under go run -C, the folder the user is in. Under
make -C that is not the Makefile's; use --dir.`

func execute(ctx context.Context, args []string) error {
	var opts sandbox.Options
	flags := newFlags("exec", "[flags] -- COMMAND [ARG...]", executeText)
	clusterFlags(flags, &opts)
	dir := flags.String("dir", "", "`folder` to run COMMAND in (default $PWD)")
	reuse := flags.Bool("reuse", false, "use the cluster that up started, starting it if need be, and leave it up")
	name := flags.String("name", defaultName, "with --reuse, the `name` of the cluster")
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("exec: there is no command to run; write it after the flags and --")
	}
	opts.Progress = os.Stderr
	if *reuse {
		running, err := ensureUp(ctx, *name, &opts)
		if err != nil {
			return err
		}
		return runCommand(ctx, flags.Args(), *dir, running.Dir)
	}
	// What happens to components is told below, in more words than a log has.
	opts.Log = slog.New(slog.DiscardHandler)
	cluster, err := sandbox.Start(ctx, &opts)
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Stop(context.WithoutCancel(ctx)) }()
	told := make(chan struct{})
	go func() {
		defer close(told)
		<-cluster.Done()
		var died *sandbox.DiedError
		if errors.As(cluster.Err(), &died) {
			fmt.Fprintln(os.Stderr, "sandbox:", died)
		}
	}()
	err = runCommand(ctx, flags.Args(), *dir, cluster.Dir)
	stopErr := cluster.Stop(context.WithoutCancel(ctx))
	<-told
	return errors.Join(err, stopErr)
}
