// Package terminal detects terminals and switches them to raw mode for interactive commands.
package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/stream"
)

// File returns the terminal of a stream or of a printable.Writer.
func File(stream any) (*os.File, bool) {
	if w, isWriter := stream.(io.Writer); isWriter {
		stream = printable.Unwrap(w)
	}
	file, ok := stream.(*os.File)
	if !ok || file == nil || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a file descriptor fits an int
		return nil, false
	}
	return file, true
}

// UseColor reports whether a stream shows colors, and enables them on a console.
func UseColor(stream io.Writer) bool {
	file, ok := File(stream)
	return ok && print.AllowsColor(stream) && enableSequences(file)
}

// Raw switches a terminal to raw mode: keys are read immediately and without echo, and out supports control sequences. restore
// restores the mode; repeated calls are no-ops.
func Raw(file, out *os.File) (restore func(), err error) {
	state, err := term.MakeRaw(int(file.Fd())) //nolint:gosec // a file descriptor fits an int
	if err != nil {
		return nil, fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	_ = enableSequences(out)
	var once sync.Once
	return func() {
		once.Do(func() { _ = term.Restore(int(file.Fd()), state) }) //nolint:gosec // as above
	}, nil
}

// Size returns the size of a terminal.
func Size(file *os.File) (stream.TerminalSize, bool) {
	width, height, err := term.GetSize(int(file.Fd())) //nolint:gosec // a file descriptor fits an int
	if err != nil || width < 0 || height < 0 || width > 1<<16-1 || height > 1<<16-1 {
		return stream.TerminalSize{}, false
	}
	return stream.TerminalSize{Width: uint16(width), Height: uint16(height)}, true //nolint:gosec // in range
}

// Sizes sends first, the size of a terminal and each changed size, until ctx is done.
func Sizes(ctx context.Context, file *os.File, first ...stream.TerminalSize) <-chan stream.TerminalSize {
	sizes := make(chan stream.TerminalSize)
	go func() {
		defer close(sizes)
		changes, stop := sizeChanges()
		defer stop()
		var last stream.TerminalSize
		send := func(size stream.TerminalSize) {
			select {
			case sizes <- size:
				last = size
			case <-ctx.Done():
			}
		}
		for _, size := range first {
			send(size)
		}
		for ctx.Err() == nil {
			if size, ok := Size(file); ok && size != last {
				send(size)
			}
			select {
			case <-changes:
			case <-ctx.Done():
			}
		}
	}()
	return sizes
}
