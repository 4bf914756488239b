//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/anykind/anykind/sandbox/sandbox"
)

// The variables that name a cluster to the command run by exec.
const (
	clusterDirEnv = "ANYKIND_SANDBOX" // its folder
	kubectlEnv    = "ANYKIND_KUBECTL" // the path of its kubectl, if it has one
)

const executeText = `Starts a cluster, runs COMMAND, takes the cluster down and exits as COMMAND did, or
with 1 when a component died and COMMAND did not fail over it. Signals are passed
on to COMMAND. Its environment has, besides that of this program:

  KUBECONFIG       the cluster's kubeconfig
  ANYKIND_SANDBOX  the cluster's folder, with the socket control.sock in it
  ANYKIND_KUBECTL  the path of a kubectl of the cluster's version; empty when kubectl
                   is not among the components
  KUBECACHEDIR     a folder for discovery caches that is removed with the cluster

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
	cmd, err := findCommand(flags.Args(), *dir)
	if err != nil {
		return err
	}
	opts.Progress = os.Stderr
	if *reuse {
		running, err := ensureUp(ctx, *name, &opts)
		if err != nil {
			return err
		}
		return runCommand(ctx, cmd, clusterEnvironment(running.Dir, running.Kubectl))
	}
	// What happens to components is told below, in more words than a log has.
	opts.Log = slog.New(slog.DiscardHandler)
	cluster, err := sandbox.Start(ctx, &opts)
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	go func() {
		<-cluster.Done()
		told <- tellDeath(cluster.Err())
	}()
	err = runCommand(ctx, cmd, clusterEnvironment(cluster.Dir, cluster.Kubectl))
	stopErr := cluster.Stop(context.WithoutCancel(ctx))
	if err != nil && stopErr != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", stopErr) // err is how to exit
	}
	// A COMMAND that failed says how itself; one that did not notice must not pass.
	return cmp.Or(err, stopErr, <-told)
}

// tellDeath prints that a component died, at once and not after COMMAND, and
// returns the exit code that calls for. A cluster that was stopped died of nothing.
func tellDeath(err error) error {
	var died *sandbox.DiedError
	if !errors.As(err, &died) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "sandbox:", died)
	return exitCode(1)
}
