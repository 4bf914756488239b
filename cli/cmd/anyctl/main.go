// Command anyctl is a program like kubectl, built from the packages of this module.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change"
	"github.com/anykind/anykind/cli/internal/command/config"
	"github.com/anykind/anykind/cli/internal/command/definition"
	"github.com/anykind/anykind/cli/internal/command/get"
	"github.com/anykind/anykind/cli/internal/command/inspect"
	"github.com/anykind/anykind/cli/internal/command/plans"
	"github.com/anykind/anykind/cli/internal/command/pod"
	"github.com/anykind/anykind/cli/internal/command/validate"
	"github.com/anykind/anykind/cli/internal/printable"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal cancels ctx and restores the default action: a second signal kills the program.
	context.AfterFunc(ctx, stop)

	state := &command.State{
		Streams:    command.Streams{In: os.Stdin, Out: printable.Writer(os.Stdout), Err: printable.Writer(os.Stderr)},
		Connection: flags.NewConnection(),
		Args:       args,
	}
	state.Connection.UserAgent = "anyctl"
	state.Connection.FieldManager = "anyctl"
	root := command.Root(state, slices.Concat(
		get.Commands(state), config.Commands(state), change.Commands(state), pod.Commands(state), inspect.Commands(state),
		definition.Commands(state), plans.Commands(state), validate.Commands(state),
	)...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	state.Connection.Close()
	err = errors.Join(err, printable.Flush(state.Out))
	defer func() { _ = printable.Flush(state.Err) }()
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exit.Interrupted
	}
	return exit.Report(state.Err, err)
}
