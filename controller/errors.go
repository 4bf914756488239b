package controller

import (
	"context"
	"errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isTerminal reports whether another attempt would fail in the same way. Conflicts pass, since callers read the object
// again, and so does the end of an attempt's own time-out: callers look at their ctx before.
func isTerminal(err error) bool {
	var refused *dynamic.RefusedError
	switch {
	case errors.As(err, &refused):
		return true
	case retry.IsConflict(err), apierrors.IsAlreadyExists(err), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return retry.IsTerminal(err)
}

func ignoreObjectNotFound(err error) error {
	if retry.IsObjectNotFound(err) {
		return nil
	}
	return err
}

// endOf returns why a controller's ctx has ended: the end of parent, from which it is derived, or what it was ended with,
// which may be an error that parent's end has caused.
func endOf(parent, ctx context.Context) error {
	cause := context.Cause(ctx)
	if parent.Err() != nil && (errors.Is(cause, context.Cause(parent)) || errors.Is(cause, parent.Err())) {
		return retry.WithContextError(parent, cause)
	}
	return cause
}
