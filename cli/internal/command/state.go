// Package command has the shared parts of anyctl's commands: streams, the connection, the resolution of arguments to objects, and
// kubectl's error texts and exit codes.
package command

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/dynamic"
)

// Streams are the standard streams of a command. Out and Err are writers of package printable: they escape control sequences on a
// terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// State is shared by all commands and passed to each constructor.
type State struct {
	Streams
	Connection *flags.Connection
	// Args is the command line. With nil, all commands are built.
	Args []string
}

// IsNamed reports whether the command line contains name. Subcommands of commands without their name on the command line are not
// built: their flags are much of the memory of a short command line.
func (s *State) IsNamed(name string) bool { return s.Args == nil || slices.Contains(s.Args, name) }

// Client returns the client opened with the connection flags.
func (s *State) Client(ctx context.Context) (*dynamic.Client, error) { return s.Connection.Client(ctx) }

// Printf writes to the standard output. On a terminal, a line break in an argument becomes a space.
func (s *State) Printf(format string, args ...any) error {
	if printable.IsTerminal(s.Out) {
		args = singleLines(args)
	}
	_, err := fmt.Fprintf(s.Out, format, args...)
	return err
}

// Errorf writes a line to the standard error stream. A line break in an argument becomes a space.
func (s *State) Errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Err, format+"\n", singleLines(args)...)
}

// singleLines applies [printable.Line] to strings, errors and Stringers, because their texts may come from a server.
func singleLines(args []any) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		switch arg.(type) {
		case string, error, fmt.Stringer:
			args[i] = printable.Line(fmt.Sprint(arg))
		}
	}
	return args
}
