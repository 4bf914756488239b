package leaderelection

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func TestCandidate_RemainingUsesTheFurtherClock(t *testing.T) {
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
		c := &candidate{opts: Options{RenewDeadline: deadline}, sentAt: tc.sent(time.Now())}
		assert.InDelta(t, tc.want, c.remaining(), float64(time.Minute), name)
	}
}
