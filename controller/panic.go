package controller

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/anykind/anykind/cache"
)

// PanicError says that one of the caller's functions panicked.
type PanicError = cache.PanicError

// contain makes err, where it is deferred, an error of a panic.
func contain(err *error, where string) {
	if value := recover(); value != nil {
		*err = panicked(where, value)
	}
}

// panicked is for deferred functions: the stack is still the panic's.
func panicked(where string, value any) error {
	return &PanicError{Where: where, Value: value, Stack: debug.Stack()}
}

// errExited is why a goroutine ended that has not said why, as FailNow has one end in tests.
var errExited = errors.New("run a controller: one of its goroutines was ended by runtime.Goexit")

// panics keeps the first, since one that comes when the ctx has ended already is not the cause of that.
type panics struct{ first atomic.Pointer[PanicError] }

// note keeps err if it is a panic's, and returns it.
func (p *panics) note(err error) error {
	var one *PanicError
	if errors.As(err, &one) {
		p.first.CompareAndSwap(nil, one)
	}
	return err
}

// beside adds the first panic to why something has ended, where it does not tell of it.
func (p *panics) beside(cause error) error {
	if first := p.first.Load(); first != nil && !errors.Is(cause, first) {
		return fmt.Errorf("%w; meanwhile %w", cause, first)
	}
	return cause
}
