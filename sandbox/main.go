//go:build unix

// Command sandbox runs a real Kubernetes on loopback, for tests and for trying
// things out. See `go run . help`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// command is one of the program's verbs.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"up", "start a cluster in the background and say how to use it", up},
		{"down", "take the background cluster down", down},
		{"status", "say what is running; fails when something is not", status},
		{"exec", "run a command with a cluster of its own", execute},
		{"build", "only build what up and exec need", buildOnly},
		{"versions", "print the Kubernetes releases that the sandbox supports", versions},
		{"restart", "restart a component of the background cluster", restart},
		{"compact", "make etcd of the background cluster forget old revisions", compact},
		{"logs", "print the log of a component of the background cluster", logs},
	}
}

// exitCode is an error that only says how to exit; everything else was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(endWithGoRun(ctx), os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	err := dispatch(ctx, args)
	var code exitCode
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "sandbox: interrupted; nothing is left behind")
		return 130
	default:
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		usage(os.Stderr)
		return exitCode(2)
	}
	name := strings.TrimLeft(args[0], "-")
	if name == "help" || name == "h" {
		usage(os.Stdout)
		return nil
	}
	if name == superviseCommand {
		return supervise(ctx, args[1:])
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:])
		}
	}
	return fmt.Errorf("there is no command %q; `sandbox help` lists them", args[0])
}

func usage(w io.Writer) {
	fmt.Fprint(w, "sandbox runs a real Kubernetes on loopback: no containers, no root.\n\nUsage: go run -C sandbox . COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-8s  %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `
Programs are built from Go modules on first use, which takes about 11 minutes on
2 cores for all of them, and kept in $ANYKIND_SANDBOX_CACHE or the user's cache
folder (anykind/sandbox).

  go run -C sandbox . COMMAND --help   tells more about a command
`)
}
