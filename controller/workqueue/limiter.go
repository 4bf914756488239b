package workqueue

import (
	"math/rand/v2"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

const (
	defaultMinBackoff = 5 * time.Millisecond
	defaultMaxBackoff = 1000 * time.Second
)

// RateLimiter returns the delay of a key after its consecutive failures, at least 1: the calls of AddRateLimited since Forget. It
// is called under the queue's lock: it must be quick and must not use the queue. [ExponentialBackoff], [FastSlow], [Bucket] and
// [MaxOf] return limiters that are safe for concurrent use, also by several queues.
type RateLimiter func(failures int) time.Duration

// ExponentialBackoff returns a per-key limiter. The delay doubles with each failure, from shortest up to longest. A random part
// of up to a half is subtracted, so that keys with a common failure are not retried together. 0 means 5 milliseconds and 1,000
// seconds.
func ExponentialBackoff(shortest, longest time.Duration) RateLimiter {
	if shortest <= 0 {
		shortest = defaultMinBackoff
	}
	if longest <= 0 {
		longest = defaultMaxBackoff
	}
	backoff := retry.Backoff{Min: shortest, Max: longest}
	return func(failures int) time.Duration { return withJitter(backoff.Delay(max(failures, 1))) }
}

// FastSlow returns a per-key limiter: the delay is fast for the first maxFast failures, and slow from then on. A random part of
// up to a half is subtracted.
func FastSlow(fast, slow time.Duration, maxFast int) RateLimiter {
	return func(failures int) time.Duration {
		if failures <= maxFast {
			return withJitter(fast)
		}
		return withJitter(slow)
	}
}

// withJitter subtracts a random part of up to a half.
func withJitter(delay time.Duration) time.Duration {
	if delay <= 0 {
		return 0
	}
	return delay - rand.N(delay/2+1)
}

// Bucket returns a token bucket limiter for all keys together: burst keys are not delayed, and the following keys are spread, a
// key per interval. A burst below 1 counts as 1; an interval of 0 or less delays nothing.
func Bucket(interval time.Duration, burst int) RateLimiter {
	bucket := &retry.Bucket{Burst: burst, Interval: max(interval, 0)}
	return func(int) time.Duration { return bucket.Reserve(1) }
}

// MaxOf returns a limiter with the longest delay of several limiters.
func MaxOf(limiters ...RateLimiter) RateLimiter {
	return func(failures int) (delay time.Duration) {
		for _, limiter := range limiters {
			delay = max(delay, limiter(failures))
		}
		return delay
	}
}
