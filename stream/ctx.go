package stream

import (
	"context"
	"errors"
	"fmt"
)

// ended is err, or the end of ctx where that is what lies behind err: errors.Is then finds ctx's error, and its cause.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, ctx.Err()) && errors.Is(err, cause):
		return err
	case cause == ctx.Err(): //nolint:errorlint // the very same where no cause was given
		return cause
	default:
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
}
