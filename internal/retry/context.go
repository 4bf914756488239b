package retry

import (
	"context"
	"errors"
	"fmt"
)

// ContextError returns the error of a context that has ended, and nil of one that has not. errors.Is finds
// context.Canceled or context.DeadlineExceeded in it, and the cause if one was given with context.WithCancelCause,
// WithTimeoutCause or WithDeadlineCause.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// WithContextError returns err, or [ContextError] if ctx has ended and err lacks its error or cause: callees often return
// only one of them, or the error of what the end of ctx broke. For a nil err it returns nil.
func WithContextError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(err, ctx.Err()) && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return ContextError(ctx)
}
