package leaderelection

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/testing/controllertest"
)

// A process that was suspended goes on before its timers fire.
func TestCandidate_NoRequestAfterSuspension(t *testing.T) {
	client, _ := controllertest.New(t)
	c, err := newCandidate(controllertest.Leases(t, client), "op", &Options{Identity: "one"})
	require.NoError(t, err)
	require.NoError(t, c.acquire(t.Context()))
	err = c.lead(t.Context(), func(ctx context.Context, _ int64) error {
		require.NoError(t, fence.Check(ctx))
		c.deadline.Renew(time.Now().Add(-time.Hour))
		require.NoError(t, ctx.Err())
		return fence.Check(ctx)
	})
	require.ErrorIs(t, err, ErrLeaseLost)
}
