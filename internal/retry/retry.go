// Package retry implements the common parts of this module's retry and list-and-watch loops: errors of ended contexts, sleeping,
// exponential backoff with jitter, token buckets, and the classification of errors as terminal, expired, denied, conflict or not
// found. Each delay has jitter and ends with its context. A loop over attempts has this form:
//
//	for n := 1; ; n++ {
//		err := attempt(ctx)
//		denied := denials.Record(err)
//		switch {
//		case err == nil:
//			return nil
//		case ctx.Err() != nil:
//			return retry.WithContextError(ctx, err)
//		case retry.IsTerminal(err) && !denied:
//			return err
//		}
//		if ended := backoff.Wait(ctx, n); ended != nil {
//			return fmt.Errorf("%w; the last error: %w", ended, err)
//		}
//	}
package retry

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// ContextError returns ctx.Err() with its cause, or nil while ctx is active. errors.Is finds context.Canceled or
// context.DeadlineExceeded in it, and the cause given to context.WithCancelCause, WithTimeoutCause or WithDeadlineCause.
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

// WithContextError returns err, or [ContextError] if ctx has ended and err lacks its error or cause. Callees often return only
// one of both, or the error of an operation interrupted by ctx. For a nil err it returns nil.
func WithContextError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(err, ctx.Err()) && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return ContextError(ctx)
}

// Backoff computes exponential delays between attempts.
type Backoff struct {
	Min time.Duration // before the second attempt
	Max time.Duration // the upper bound, without jitter
}

// Delay returns the delay after the n-th failed attempt in a row, counted from 1: Min, doubled with each attempt up to
// Max, without jitter. It returns 0 for n below 1.
func (b Backoff) Delay(n int) time.Duration {
	if n < 1 {
		return 0
	}
	delay := b.Min
	for ; n > 1 && delay < b.Max; n-- {
		delay += min(delay, b.Max-delay)
	}
	return min(delay, b.Max)
}

// Wait sleeps for Delay(n) with jitter. See [Sleep] for its error.
func (b Backoff) Wait(ctx context.Context, n int) error { return Sleep(ctx, Jitter(ctx, b.Delay(n))) }

// Jitter returns d plus up to a half of it, so that clients with a common failure do not retry together.
func Jitter(ctx context.Context, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d + Random(ctx, d/2)
}

// Random returns a duration from 0 to limit, chosen by the function of [WithRandom] or at random.
func Random(ctx context.Context, limit time.Duration) time.Duration {
	if chosen, ok := ctx.Value(randomKey{}).(source); ok {
		return chosen.duration(limit)
	}
	return rand.N(limit + 1) //nolint:gosec // spread, not secrecy
}

// RandomName returns 16 lower-case letters and digits, or the name of the function of [WithRandom].
func RandomName(ctx context.Context) string {
	if chosen, ok := ctx.Value(randomKey{}).(source); ok && chosen.name != nil {
		return chosen.name()
	}
	return strings.ToLower(crand.Text()[:16])
}

// WithRandom returns a ctx with deterministic sources for Random and, unless name is nil, RandomName, for tests.
func WithRandom(ctx context.Context, duration func(limit time.Duration) time.Duration, name func() string) context.Context {
	return context.WithValue(ctx, randomKey{}, source{duration, name})
}

// source is a source of random durations and names.
type source struct {
	duration func(limit time.Duration) time.Duration
	name     func() string
}

type randomKey struct{}

// Sleep waits for d, without jitter, or until ctx ends; it then returns [ContextError].
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ContextError(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ContextError(ctx) // also if both were ready
}
