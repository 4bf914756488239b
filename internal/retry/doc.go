// Package retry implements what the retry and list-and-watch loops of this module share: errors of ended contexts,
// sleeping, exponential backoff with jitter, and the classification of errors as terminal, expired, denied, conflict or
// not found. Each delay has jitter and ends with its context. A loop over attempts has this form:
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
