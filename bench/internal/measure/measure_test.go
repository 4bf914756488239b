//go:build unix

package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

func TestATaskThatSawLessThanThereIsHasNoFigures(t *testing.T) {
	for want, task := range map[string]Task{
		"2 objects came, not 3": seeing(2, "web"),
		"4 objects came, not 3": seeing(4, "web"),
		"3 objects had no name": seeing(3, ""),
		"it broke":              func(context.Context, *Meter) error { return errors.New("it broke") },
	} {
		_, err := take(t.Context(), task, &Settings{Count: 3})
		require.ErrorContains(t, err, want)
	}
}

func TestFiguresAreOfTheTaskAlone(t *testing.T) {
	before := make([]byte, 8<<20)
	var held []byte
	figures, err := take(t.Context(), func(_ context.Context, m *Meter) error {
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

func TestTheHeapIsSeenWithoutGarbage(t *testing.T) {
	const count, each = 100, 64 << 10
	iterate := func(hold bool) float64 {
		var held [][]byte
		figures, err := take(t.Context(), func(_ context.Context, m *Meter) error {
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
	dropped, held := iterate(false), iterate(true)
	assert.Greater(t, held-dropped, float64(count*each)*0.9)
	assert.Less(t, held-dropped, float64(count*each)*1.5)
}

func TestCallsAreCountedOneByOne(t *testing.T) {
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

func TestAProfileIsWrittenOfEachKind(t *testing.T) {
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
