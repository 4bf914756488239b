//go:build unix

package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeing is a task that comes to n objects of a name.
func seeing(n int, name string) Task {
	return func(_ context.Context, m *Meter) error {
		for range n {
			m.See(name)
		}
		return nil
	}
}

func TestMeasureTask_RequiresAllObjects(t *testing.T) {
	for want, task := range map[string]Task{
		"2 objects seen, want 3": seeing(2, "web"),
		"4 objects seen, want 3": seeing(4, "web"),
		"3 objects had no name":  seeing(3, ""),
		"it broke":               func(context.Context, *Meter) error { return errors.New("it broke") },
	} {
		_, err := measureTask(t.Context(), task, &Settings{Count: 3})
		require.ErrorContains(t, err, want)
	}
}

func TestMeasureTask_ExcludesEarlierCosts(t *testing.T) {
	before := make([]byte, 8<<20)
	var held []byte
	figures, err := measureTask(t.Context(), func(_ context.Context, m *Meter) error {
		held = make([]byte, 1<<20)
		for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
			continue
		}
		m.See("web")
		return nil
	}, &Settings{Count: 1})
	require.NoError(t, err)
	runtime.KeepAlive(before)
	runtime.KeepAlive(held)
	assert.GreaterOrEqual(t, figures["alloc"], float64(1<<20))
	assert.Less(t, figures["alloc"], float64(2<<20))
	assert.GreaterOrEqual(t, figures["allocs"], 1.0)
	assert.GreaterOrEqual(t, figures["wall"], 0.02)
	assert.Positive(t, figures["cpu"])
}

func TestMeter_SampleHeap(t *testing.T) {
	const count, each = 100, 64 << 10
	iterate := func(hold bool) float64 {
		var held [][]byte
		figures, err := measureTask(t.Context(), func(_ context.Context, m *Meter) error {
			for range count {
				made := make([]byte, each)
				if hold {
					held = append(held, made)
				}
				m.See("web")
				m.SampleHeap()
			}
			runtime.KeepAlive(held)
			return nil
		}, &Settings{Count: count})
		require.NoError(t, err)
		return figures["heap"]
	}
	dropped := iterate(false)
	held := iterate(true)
	assert.Greater(t, held-dropped, float64(count*each)*0.9)
	assert.Less(t, held-dropped, float64(count*each)*1.5)
}

func TestMeter_Calls(t *testing.T) {
	m := &Meter{Settings: &Settings{}, Figures: Figures{}}
	var kept [][]byte
	var numbers []int
	require.NoError(t, m.Calls("get", 10, func(i int) error {
		numbers = append(numbers, i)
		kept = append(kept, make([]byte, 4096))
		return nil
	}))
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, numbers)
	assert.GreaterOrEqual(t, m.Figures["get-alloc"], 4096.0)
	assert.GreaterOrEqual(t, m.Figures["get-allocs"], 1.0)
	assert.Positive(t, m.Figures["get-wall"])
	require.ErrorContains(t, m.Calls("get", 3, func(int) error { return errors.New("refused") }), "get: refused")
	require.Error(t, m.Calls("get", 0, nil))
}

func TestProfile_WritesFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "task")
	rate := runtime.MemProfileRate
	t.Cleanup(func() { runtime.MemProfileRate = rate })
	require.NoError(t, profile(t.Context(), seeing(1, "web"), &Settings{Count: 1, Profile: file, ProfileFor: time.Millisecond}))
	for _, kind := range []string{".cpu", ".allocs"} {
		info, err := os.Stat(file + kind)
		require.NoError(t, err)
		assert.Positive(t, info.Size())
	}
}

func TestMeter_Stage(t *testing.T) {
	var held []byte
	figures, err := measureTask(t.Context(), func(_ context.Context, m *Meter) error {
		m.See("web")
		for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
			continue
		}
		err := m.Stage("sync", func() error { held = make([]byte, 64<<20); return nil })
		m.Held()
		runtime.KeepAlive(held)
		return err
	}, &Settings{Count: 1})
	require.NoError(t, err)
	assert.Less(t, figures["sync-wall"], figures["wall"])
	assert.LessOrEqual(t, figures["sync-cpu"], figures["cpu"])
	assert.GreaterOrEqual(t, figures["sync-peak"], float64(64<<20))
	assert.InDelta(t, 64<<20, figures["held"], 1<<20)
	m := &Meter{Figures: Figures{}}
	require.ErrorContains(t, m.Stage("sync", func() error { return errors.New("refused") }), "refused")
	assert.Empty(t, m.Figures)
}

func TestMeter_SeeChangeDelay(t *testing.T) {
	figures, err := measureTask(t.Context(), func(_ context.Context, m *Meter) error {
		m.Ready()
		for _, ago := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour} {
			m.SeeChange("web", strconv.FormatInt(time.Now().Add(-ago).UnixNano(), 10))
		}
		return nil
	}, &Settings{Count: 3})
	require.NoError(t, err)
	assert.InDelta(t, 7200, figures["event-delay"], 600)
	assert.InDelta(t, 10800, figures["event-delay-99"], 600)
	assert.Contains(t, figures, "event-cpu")
	_, err = measureTask(t.Context(), func(_ context.Context, m *Meter) error { m.SeeChange("web", "yes"); return nil }, &Settings{Count: 1})
	require.ErrorContains(t, err, "1 changes lack the annotation")
}

func TestMeter_LookupsFindAllPods(t *testing.T) {
	m := &Meter{Settings: &Settings{Count: NodeCount}, Figures: Figures{}}
	require.NoError(t, m.Lookups(func(string) (int, error) { return 1, nil }))
	assert.Positive(t, m.Figures["lookup-wall"])
	require.ErrorContains(t, m.Lookups(func(string) (int, error) { return 2, nil }), "not 40000")
	require.ErrorContains(t, m.Lookups(func(string) (int, error) { return 0, errors.New("no index") }), "no index")
}
