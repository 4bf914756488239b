package parity_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/anykind/anykind/transport"
)

// TestRateLimiter_FromXTime checks that golang.org/x/time's limiter is a transport.RateLimiter, as its documentation
// promises.
func TestRateLimiter_FromXTime(t *testing.T) {
	var limiter transport.RateLimiter = rate.NewLimiter(rate.Inf, 1)
	require.NoError(t, limiter.Wait(t.Context()))
}
