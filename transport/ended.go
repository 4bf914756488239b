package transport

import (
	"context"
	"fmt"
)

// ended is why ctx has ended: errors.Is finds context.Canceled or DeadlineExceeded in it, and the cause that was given.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() { //nolint:errorlint // the very same where no cause was given
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
