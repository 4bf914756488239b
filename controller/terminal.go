package controller

import (
	"errors"
	"fmt"
	"time"
)

// TerminalError returns an error of a reconcile that is not retried: the object must change first. A delay of an earlier reconcile
// ends. The error is logged and counted as every error, and wraps err. errors.Is(err, TerminalError(nil)) reports whether an error is terminal, for example in
// [Options].OnReconcile.
func TerminalError(err error) error { return &terminalError{err} }

type terminalError struct{ err error }

func (e *terminalError) Error() string {
	if e.err == nil {
		return "terminal error"
	}
	return fmt.Sprintf("terminal error: %v", e.err)
}

func (e *terminalError) Unwrap() error { return e.err }

func (e *terminalError) Is(target error) bool {
	_, ok := target.(*terminalError)
	return ok
}

func isTerminal(err error) bool { return errors.Is(err, TerminalError(nil)) }

// RetryAfter returns an error of a reconcile with a minimum delay for the retry, for example the Retry-After of an API. The delay of
// Options.Queue.RateLimiter applies if it is longer. The delay replaces that of an earlier reconcile. A change of the object is
// reconciled at once. RetryAfter wraps err; nil stays nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, delay}
}

type retryAfterError struct {
	error
	delay time.Duration
}

func (e *retryAfterError) Unwrap() error { return e.error }
