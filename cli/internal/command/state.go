// Package command has what the commands of anyctl share: streams, the connection, the objects that arguments name, and
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

// Streams are the standard streams of a command. Out and Err are writers of package printable: what is written to a terminal cannot
// control it.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// State is shared by all commands; each constructor gets it.
type State struct {
	Streams
	Connection *flags.Connection
	// Args is the command line. nil builds all commands.
	Args []string
}

// IsNamed reports whether the command line has a command's name. Subcommands of others are not built: their flags are much of the
// memory of a short command line.
func (s *State) IsNamed(name string) bool { return s.Args == nil || slices.Contains(s.Args, name) }

// Client returns the client of the connection flags.
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

// singleLines returns args with [printable.Line] of each text, which others may have written.
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
