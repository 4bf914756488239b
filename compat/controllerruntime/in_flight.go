package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inFlightWrites are writes without a response yet.
type inFlightWrites struct {
	mu     sync.Mutex
	writes map[kindForm]map[chan struct{}]client.ObjectKey
}

// begin adds a write and returns the function that ends it.
func (w *inFlightWrites) begin(of kindForm, key client.ObjectKey) (end func()) {
	done := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writes == nil {
		w.writes = map[kindForm]map[chan struct{}]client.ObjectKey{}
	}
	if w.writes[of] == nil {
		w.writes[of] = map[chan struct{}]client.ObjectKey{}
	}
	w.writes[of][done] = key
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.writes[of], done)
		close(done)
	}
}

// wait waits until the current writes have ended: the writes to the keys or, without keys, all writes to the kind.
func (w *inFlightWrites) wait(ctx context.Context, of kindForm, keys ...client.ObjectKey) error {
	var begun []chan struct{}
	w.mu.Lock()
	for done, key := range w.writes[of] {
		if len(keys) == 0 || key == keys[0] {
			begun = append(begun, done)
		}
	}
	w.mu.Unlock()
	for _, done := range begun {
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("wait for a write in flight: %w", endError(ctx))
		}
	}
	return nil
}

// endError returns the error of an ended ctx with its cause, such as leaderelection.ErrLeaseLost.
func endError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
