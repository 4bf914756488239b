//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// enableSequences reports whether a terminal supports control sequences.
func enableSequences(*os.File) bool { return true }

// sizeChanges returns a channel with a value for each change of the terminal size.
func sizeChanges() (changes <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	return signals, func() { signal.Stop(signals) }
}
