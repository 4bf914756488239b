package restmapper_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAMistypedNameInALoopAsksTheServerOnceASecond(t *testing.T) {
	lines := served
	mapper, discoveries := scripted(t, &lines)
	now := time.Unix(1_000_000, 0)
	mapper.SetClock(func() time.Time { return now })
	_, err := mapper.Resource(t.Context(), "pods")
	require.NoError(t, err)
	ask := func(want int32) {
		t.Helper()
		for range 100 {
			_, err := mapper.Resource(t.Context(), "deploymnets")
			require.True(t, meta.IsNoMatchError(err), "%v", err)
			require.ErrorContains(t, err, "deployments.apps")
		}
		require.Equal(t, want, discoveries.Load())
	}
	ask(2)
	now = now.Add(900 * time.Millisecond)
	ask(2)
	now = now.Add(200 * time.Millisecond)
	ask(3)

	_, err = mapper.Resource(t.Context(), "another")
	require.True(t, meta.IsNoMatchError(err))
	assert.EqualValues(t, 4, discoveries.Load(), "the first miss of each name asks")
	_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Kind: "another"})
	require.True(t, meta.IsNoMatchError(err))
	assert.EqualValues(t, 5, discoveries.Load(), "a kind is not a resource of the same name")
}

func TestWhatIsCreatedAfterAMissIsFoundWhenTheMissIsForgotten(t *testing.T) {
	lines := served
	mapper, _ := scripted(t, &lines)
	now := time.Unix(1_000_000, 0)
	mapper.SetClock(func() time.Time { return now })
	_, err := mapper.Resource(t.Context(), "ats")
	require.True(t, meta.IsNoMatchError(err))
	lines += "\ncnat.example.com/v1 ats at At"
	_, err = mapper.Resource(t.Context(), "ats")
	require.True(t, meta.IsNoMatchError(err))
	now = now.Add(time.Second)
	_, err = mapper.Resource(t.Context(), "ats")
	require.NoError(t, err)
}

func TestASnapshotThatHasTheNameEndsItsMissAtOnce(t *testing.T) {
	lines := served
	mapper, discoveries := scripted(t, &lines)
	now := time.Unix(1_000_000, 0)
	mapper.SetClock(func() time.Time { return now })
	for _, name := range []string{"ats", "bats"} {
		_, err := mapper.Resource(t.Context(), name)
		require.True(t, meta.IsNoMatchError(err))
	}
	lines += "\ncnat.example.com/v1 ats at At"
	_, err := mapper.Resource(t.Context(), "something else") // which takes a new snapshot
	require.True(t, meta.IsNoMatchError(err))
	asked := discoveries.Load()
	now = now.Add(900 * time.Millisecond)
	_, err = mapper.Resource(t.Context(), "ats")
	require.NoError(t, err)
	_, err = mapper.Resource(t.Context(), "bats")
	require.ErrorContains(t, err, "did you mean ats.cnat.example.com", "the error is that of the new snapshot")
	assert.Equal(t, asked, discoveries.Load(), "nobody asked the server")
	now = now.Add(200 * time.Millisecond)
	_, err = mapper.Resource(t.Context(), "bats")
	require.True(t, meta.IsNoMatchError(err))
	assert.Equal(t, asked+1, discoveries.Load(), "the miss ended when the first one had to")
}

func TestMissesTakeBoundedMemory(t *testing.T) {
	lines := served
	mapper, _ := scripted(t, &lines)
	now := time.Unix(1_000_000, 0)
	mapper.SetClock(func() time.Time { return now })
	for i := range 1025 {
		if i == 600 {
			now = now.Add(time.Second)
		}
		_, err := mapper.Resource(t.Context(), fmt.Sprintf("none%d", i))
		require.True(t, meta.IsNoMatchError(err))
	}
	assert.Equal(t, 425, mapper.Misses(), "those that ended make room")
	for i := range 1024 {
		_, err := mapper.Resource(t.Context(), fmt.Sprintf("more%d", i))
		require.True(t, meta.IsNoMatchError(err))
		require.LessOrEqual(t, mapper.Misses(), 1024)
	}
}

func TestConcurrentMissesShareTheirQuestions(t *testing.T) {
	lines := served
	mapper, discoveries := scripted(t, &lines)
	_, err := mapper.Resource(t.Context(), "pods")
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := mapper.Resource(t.Context(), "deploymnets")
			assert.True(t, meta.IsNoMatchError(err), "%v", err)
		})
	}
	all.Wait()
	assert.Less(t, discoveries.Load(), int32(25))
}
