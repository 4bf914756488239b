// Package exampletest has a testing.TB for Examples.
package exampletest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// T is a testing.TB that prints logged lines. All methods without a declaration here panic.
type T struct {
	testing.TB

	ctx      context.Context //nolint:containedctx // as in testing.T
	cancel   context.CancelFunc
	cleanups []func()
}

// New returns a T. end ends the test: it calls the functions of Cleanup.
func New() (t *T, end func()) {
	t = &T{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, t.end
}

func (t *T) end() {
	t.cancel()
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
}

// Helper does nothing.
func (t *T) Helper() {}

// Name returns the name of a test.
func (t *T) Name() string { return "TestShop" }

// Context returns a context of the test.
func (t *T) Context() context.Context { return t.ctx }

// Cleanup registers a function for the end of the test.
func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Logf prints a line.
func (t *T) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Errorf prints a line.
func (t *T) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Fatalf panics.
func (t *T) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
