//go:build !unix

package terminal

import (
	"time"
)

// sizePeriod is the polling interval for the terminal size on systems without SIGWINCH.
const sizePeriod = 250 * time.Millisecond

// sizeChanges returns a channel with a value every sizePeriod.
func sizeChanges() (changes <-chan time.Time, stop func()) {
	ticker := time.NewTicker(sizePeriod)
	return ticker.C, ticker.Stop
}
