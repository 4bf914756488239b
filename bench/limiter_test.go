package bench_test

import (
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// TestARateLimiterOfXTimeWillDo keeps the promise of transport.Options, whose package does without golang.org/x/time.
func TestARateLimiterOfXTimeWillDo(t *testing.T) {
	var limiter transport.Limiter = rate.NewLimiter(rate.Inf, 1)
	require.NoError(t, limiter.Wait(t.Context()))
}
