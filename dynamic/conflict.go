package dynamic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// conflictAttempts is how often a change is tried that somebody else keeps overtaking.
const conflictAttempts = 10

// RetryOnConflict calls change until it returns something else than an error that apierrors.IsConflict knows, ten times
// at most and with growing pauses, of some four seconds in all; change must read anew each time what it changes. It
// returns what change returned last. If ctx ends in a pause, the error is both ctx's and the last conflict. An
// *[ApplyConflictError] is returned at once: it stays until somebody decides. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions; for one object [Resource.Upsert] is
// the easier call.
func RetryOnConflict(ctx context.Context, change func(context.Context) error) error {
	return retryConflicts(ctx, func(ctx context.Context) (again bool, err error) {
		err = change(ctx)
		var owned *ApplyConflictError
		return apierrors.IsConflict(err) && !errors.As(err, &owned), err
	})
}

// retryConflicts calls attempt until it succeeds, fails without a conflict, or has been called conflictAttempts times.
func retryConflicts(ctx context.Context, attempt func(context.Context) (again bool, err error)) error {
	backoff := retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		again, err := attempt(ctx)
		if err == nil || !again {
			return err
		}
		if n == conflictAttempts {
			return fmt.Errorf("given up after %d attempts: %w", n, err)
		}
		if ended := backoff.Wait(ctx, n); ended != nil {
			return fmt.Errorf("%w after %w", ended, err)
		}
	}
}
