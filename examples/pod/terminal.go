package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/anykind/anykind/stream"
)

// terminal sets the program's terminal to raw mode and watches its size. It runs stty, to avoid a dependency.
type terminal struct {
	sizes chan stream.TerminalSize
	saved string
	stop  context.CancelFunc
	done  chan struct{}
}

func rawTerminal(ctx context.Context) *terminal {
	ctx, stop := context.WithCancel(ctx)
	t := &terminal{sizes: make(chan stream.TerminalSize), stop: stop, done: make(chan struct{})}
	t.saved = stty("-g")
	if t.saved != "" {
		stty("raw", "-echo")
	}
	go t.watchSize(ctx)
	return t
}

// watchSize sends the terminal's size whenever it changes.
func (t *terminal) watchSize(ctx context.Context) {
	defer close(t.done)
	var last stream.TerminalSize
	for ctx.Err() == nil {
		var now stream.TerminalSize
		if n, _ := fmt.Sscan(stty("size"), &now.Height, &now.Width); n == 2 && now != last {
			select {
			case t.sizes <- now:
				last = now
			case <-ctx.Done():
			}
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (t *terminal) restore() {
	t.stop()
	<-t.done
	if t.saved != "" {
		stty(t.saved)
	}
}

// stty runs stty on the program's terminal and returns its output, "" without a terminal.
func stty(args ...string) string {
	cmd := exec.Command("stty", args...)
	cmd.Stdin = os.Stdin
	output, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}
