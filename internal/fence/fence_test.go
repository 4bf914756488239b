package fence

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setWall returns t with its wall clock moved by d, and its monotonic clock as it was: what time.Now returns after a
// suspension, or when somebody has set the clock. Nothing but the runtime makes such times.
func setWall(t *testing.T, from time.Time, d time.Duration) time.Time {
	t.Helper()
	moved := from
	fields := (*struct { // as time.Time has them: the seconds are above the 30 bits of nanoseconds
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&moved))
	fields.wall += uint64(d/time.Second) << 30
	require.Zero(t, moved.Sub(from))
	require.Equal(t, d, moved.Round(0).Sub(from.Round(0)))
	return moved
}

func TestDeadline_RemainingUsesTheFurtherClock(t *testing.T) {
	const deadline = time.Hour
	for name, tc := range map[string]struct {
		sent func(now time.Time) time.Time
		want time.Duration
	}{
		"both clocks went on":      {func(now time.Time) time.Time { return now.Add(-10 * time.Minute) }, 50 * time.Minute},
		"suspended":                {func(now time.Time) time.Time { return setWall(t, now, -2*time.Hour) }, -time.Hour},
		"the clock was set back":   {func(now time.Time) time.Time { return setWall(t, now.Add(-10*time.Minute), 3*time.Hour) }, 50 * time.Minute},
		"set back while suspended": {func(now time.Time) time.Time { return setWall(t, now.Add(-2*time.Hour), time.Hour) }, -time.Hour},
	} {
		d := NewDeadline(deadline)
		assert.Zero(t, d.Remaining(), "never renewed")
		d.Renew(tc.sent(time.Now()))
		assert.InDelta(t, tc.want, d.Remaining(), float64(time.Minute), name)
	}
}

func TestCheck_OuterChecksRemain(t *testing.T) {
	assert.NoError(t, Check(t.Context()))
	errOuter, errInner := errors.New("outer"), errors.New("inner")
	var outer, inner error
	ctx := WithCheck(WithCheck(t.Context(), func() error { return outer }), func() error { return inner })
	ctx = context.WithoutCancel(ctx)
	assert.NoError(t, Check(ctx))
	inner = errInner
	assert.Equal(t, errInner, Check(ctx))
	outer = errOuter
	assert.Equal(t, errOuter, Check(ctx))
}
