//go:build !unix

package terminal

import (
	"time"
)

// sizePeriod is how often the size of a terminal is read where no signal tells that it has changed.
const sizePeriod = 250 * time.Millisecond

// sizeChanges returns a channel that gets a value when the terminal's size may have changed.
func sizeChanges() (changes <-chan time.Time, stop func()) {
	ticker := time.NewTicker(sizePeriod)
	return ticker.C, ticker.Stop
}
