package controller

import (
	"runtime/debug"

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
