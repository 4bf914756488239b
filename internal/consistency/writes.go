// Package consistency records the writes made with a ctx, for read-your-writes consistency. Caches record writes to their
// objects. Controllers wait until the caches contain these writes.
package consistency

import (
	"context"
	"errors"
	"sync"
)

// Writes is a set of writes made with the same ctx. The zero value is empty. It is safe for concurrent use.
type Writes struct {
	mu   sync.Mutex
	wait map[any]func(context.Context) error // keyed by cache and object
}

type writesKey struct{}

// WithWrites returns a ctx for [Record] to add writes to w.
func WithWrites(ctx context.Context, w *Writes) context.Context {
	return context.WithValue(ctx, writesKey{}, w)
}

// Record adds a write to the Writes of ctx, if there are any. id identifies the cache and the object. A later write with the
// same id replaces the earlier write. wait waits until the cache contains the write.
func Record(ctx context.Context, id any, wait func(context.Context) error) {
	w, _ := ctx.Value(writesKey{}).(*Writes)
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wait == nil {
		w.wait = map[any]func(context.Context) error{}
	}
	w.wait[id] = wait
}

// IsEmpty reports whether there are no writes.
func (w *Writes) IsEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wait) == 0
}

// Wait waits until the caches contain the writes recorded before the call. It returns the joined errors of the waits.
func (w *Writes) Wait(ctx context.Context) error {
	w.mu.Lock()
	all := make([]func(context.Context) error, 0, len(w.wait))
	for _, wait := range w.wait {
		all = append(all, wait)
	}
	w.mu.Unlock()
	var failures []error
	for _, wait := range all {
		failures = append(failures, wait(ctx))
	}
	return errors.Join(failures...)
}
