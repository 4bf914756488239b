// Package consistency carries in a ctx what is written with it: caches record the writes to their objects, and controllers wait until
// the caches have them.
package consistency

import (
	"context"
	"errors"
	"sync"
)

// Writes are the writes that were made with one ctx. The zero value is none. It is safe for concurrent use.
type Writes struct {
	mu   sync.Mutex
	wait map[any]func(context.Context) error // by cache and object
}

type writesKey struct{}

// WithWrites returns a ctx with which [Record] adds to w.
func WithWrites(ctx context.Context, w *Writes) context.Context {
	return context.WithValue(ctx, writesKey{}, w)
}

// Record adds a write to the Writes of ctx, if it has any. id identifies the cache and the object; a later write of the same id
// replaces the earlier one. wait waits until the cache has the write.
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

// IsEmpty reports whether nothing was written.
func (w *Writes) IsEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wait) == 0
}

// Wait waits until the caches have the writes that were recorded before the call, and returns the errors of those waits.
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
