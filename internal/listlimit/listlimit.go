// Package listlimit bounds the number of concurrent initial lists.
package listlimit

import (
	"context"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// maxListTime is the longest time of a counted list. A list of a slow server must not delay the remaining lists.
const maxListTime = 5 * time.Second

// Limit bounds the number of concurrent lists. It is safe for concurrent use.
type Limit struct {
	lists chan struct{} // has an element for each counted list
}

// New returns a limit of count concurrent lists.
func New(count int) *Limit { return &Limit{make(chan struct{}, count)} }

// Acquire waits until a list may start. release is called after the list, and may be called again.
func (l *Limit) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case l.lists <- struct{}{}:
	case <-ctx.Done():
		return func() {}, retry.ContextError(ctx)
	}
	free := sync.OnceFunc(func() { <-l.lists })
	timer := time.AfterFunc(maxListTime, free)
	return func() {
		timer.Stop()
		free()
	}, nil
}
