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
	"regexp"
	"strings"
	"syscall"
	"time"
)

// command is a subcommand of the program.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"up", "start a cluster in the background and print how to use it", up},
		{"down", "stop the background cluster", down},
		{"status", "print what is running; fails if a component is not ready", status},
		{"exec", "run a command against a temporary cluster", execute},
		{"build", "only build what up and exec need", buildOnly},
		{"versions", "print the Kubernetes releases that the sandbox supports", versions},
		{"restart", "restart a component of the background cluster", restart},
		{"compact", "compact etcd of the background cluster", compact},
		{"logs", "print the log of a component of the background cluster", logs},
	}
}

// exitCode is an error without a message: the program exits with this code.
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
		fmt.Fprintln(os.Stderr, "sandbox: interrupted; everything was removed")
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
	return fmt.Errorf("unknown command %q (`sandbox help` lists them)", args[0])
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

  go run -C sandbox . COMMAND --help   prints the help of a command
`)
}

// goRunPath matches the path of a program run by go run: in the build cache since Go 1.24, or else in a temporary folder.
var goRunPath = regexp.MustCompile(`/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$|/go-build\d+/b\d+/exe/[^/]+$`)

// endWithGoRun returns a context that also ends when go run exits, if this program was started by go run: go run does not forward
// SIGTERM.
func endWithGoRun(ctx context.Context) context.Context {
	path, err := os.Executable()
	if err != nil || !goRunPath.MatchString(path) {
		return ctx
	}
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for range ticker.C {
			if os.Getppid() != parent {
				cancel()
				return
			}
		}
	}()
	return ctx
}
