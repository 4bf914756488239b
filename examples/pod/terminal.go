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

// terminal is the one that the program runs in, if any, handed through to the command: what is typed goes there as it
// is. It asks the program stty, to need no package for it.
type terminal struct {
	sizes chan stream.Size
	saved string
	stop  context.CancelFunc
	done  chan struct{}
}

func rawTerminal(ctx context.Context) *terminal {
	ctx, stop := context.WithCancel(ctx)
	t := &terminal{sizes: make(chan stream.Size), stop: stop, done: make(chan struct{})}
	t.saved = stty("-g")
	if t.saved != "" {
		stty("raw", "-echo")
	}
	go t.watch(ctx)
	return t
}

// watch tells the terminal's size whenever it has changed.
func (t *terminal) watch(ctx context.Context) {
	defer close(t.done)
	var told stream.Size
	for ctx.Err() == nil {
		var now stream.Size
		if n, _ := fmt.Sscan(stty("size"), &now.Height, &now.Width); n == 2 && now != told {
			select {
			case t.sizes <- now:
				told = now
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

// stty gives what stty says of our terminal, "" where there is none.
func stty(args ...string) string {
	cmd := exec.Command("stty", args...)
	cmd.Stdin = os.Stdin
	said, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(said))
}
