package reflector

import (
	"context"
	"errors"
	"sync"
)

// errRelistRequested ends a stream after a value of Options.Relist.
var errRelistRequested = errors.New("a relist was requested")

// listAndWatchUntilRequest is listAndWatch, ended with errRelistRequested by a value of Options.Relist. The relist is by pages: the
// objects of the initial events of a watch are always those of the server's watch cache.
func (r *Reflector[T]) listAndWatchUntilRequest(ctx context.Context) error {
	if r.Relist == nil {
		return r.listAndWatch(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	isRequested := false
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case _, isRequested = <-r.Relist: // also if the stream ends at the same time; false for a closed channel
			if isRequested {
				cancel(errRelistRequested)
			}
		case <-ctx.Done():
		}
	})
	err := r.listAndWatch(ctx)
	cancel(nil)
	waiting.Wait()
	if isRequested {
		return errRelistRequested
	}
	return err
}
