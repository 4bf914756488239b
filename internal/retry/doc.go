// Package retry holds what every long-lived call of this module shares: the error of a context that has ended, sleeping,
// exponential backoff with jitter, and the classification of errors into terminal, expired, denied, conflict and not
// found.
//
// A loop over attempts has this form:
//
//	for n := 1; ; n++ {
//		err := attempt(ctx)
//		switch {
//		case err == nil:
//			return nil
//		case ctx.Err() != nil:
//			return retry.WithContextError(ctx, err)
//		case retry.IsTerminal(err) && !denials.Transient(err):
//			return err
//		}
//		if ended := backoff.Wait(ctx, n); ended != nil {
//			return fmt.Errorf("%w; the last error: %w", ended, err)
//		}
//	}
package retry
