//go:build !unix

package terminal

import (
	"time"
)

// sizePeriod is the interval of reading the terminal size where no signal reports a change.
const sizePeriod = 250 * time.Millisecond

// sizeChanges returns a channel with a value for each time to read the terminal size.
func sizeChanges() (changes <-chan time.Time, stop func()) {
	ticker := time.NewTicker(sizePeriod)
	return ticker.C, ticker.Stop
}
