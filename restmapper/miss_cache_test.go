package restmapper_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/restmapper"
)

func requireMissing(t *testing.T, mapper *restmapper.Mapper, name string) {
	t.Helper()
	_, err := mapper.Resource(t.Context(), name)
	require.True(t, meta.IsNoMatchError(err), "%v", err)
}

func TestMapper_SearchesLessOftenForMissingName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper, server := serve(t, served)
		_, err := mapper.Resource(t.Context(), "pods")
		require.NoError(t, err)
		began := time.Now()
		asked := server.Count()
		var when []time.Duration
		for range 10_000 { // ten seconds
			requireMissing(t, mapper, "deploymnets")
			if now := server.Count(); now != asked {
				asked = now
				when = append(when, time.Since(began))
			}
			time.Sleep(time.Millisecond)
		}
		assert.Equal(t, []time.Duration{
			0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond, 750 * time.Millisecond, 1550 * time.Millisecond,
			2550 * time.Millisecond, 3550 * time.Millisecond, 4550 * time.Millisecond, 5550 * time.Millisecond, 6550 * time.Millisecond,
			7550 * time.Millisecond, 8550 * time.Millisecond, 9550 * time.Millisecond,
		}, when)

		time.Sleep(10 * time.Second)
		asked = server.Count()
		requireMissing(t, mapper, "deploymnets")
		time.Sleep(50 * time.Millisecond)
		requireMissing(t, mapper, "deploymnets")
		assert.Equal(t, asked+4, server.Count(), "a name that is not looked up is removed")
		_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Kind: "deploymnets"})
		require.True(t, meta.IsNoMatchError(err))
		assert.Equal(t, asked+6, server.Count(), "a kind is not a resource of the same name")
	})
}

func TestMapper_FindsNewResourceAfterMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper, server := serve(t, served)
		requireMissing(t, mapper, "ats")
		server.Serve(served + "\ncnat.example.com/v1 ats at At")
		requireMissing(t, mapper, "ats")
		time.Sleep(50 * time.Millisecond)
		_, err := mapper.Resource(t.Context(), "ats")
		require.NoError(t, err)
	})
}

func TestMapper_NewSnapshotEndsMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New(served)
		client := connect(t, server)
		mapper := restmapper.New(client)
		for _, name := range []string{"ats", "bats"} {
			requireMissing(t, mapper, name)
		}
		server.Serve(served + "\ncnat.example.com/v1 ats at At")
		time.Sleep(time.Millisecond)
		_, err := client.Refresh(t.Context())
		require.NoError(t, err)
		asked := server.Count()
		_, err = mapper.Resource(t.Context(), "ats")
		require.NoError(t, err)
		for range 2 {
			_, err = mapper.Resource(t.Context(), "bats")
			require.ErrorContains(t, err, "did you mean ats.cnat.example.com", "the error is that of the new snapshot")
		}
		assert.Equal(t, asked, server.Count(), "nobody asked the server")
		time.Sleep(50 * time.Millisecond)
		requireMissing(t, mapper, "bats")
		assert.Greater(t, server.Count(), asked, "the miss ended when the first one had to")
	})
}

func TestMapper_MissesTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper, server := serve(t, "/v1 pods pod Pod po")
		began := time.Now()
		for i := range 1100 {
			requireMissing(t, mapper, fmt.Sprintf("none%d", i))
			require.LessOrEqual(t, mapper.Misses(), 1024)
		}
		assert.LessOrEqual(t, float64(server.Count()), 300+2+50*time.Since(began).Seconds())
		time.Sleep(20 * time.Second)
		requireMissing(t, mapper, "another")
		assert.Equal(t, 1, mapper.Misses(), "the others have expired")
	})
}

func TestMapper_MissesHoldNoSnapshot(t *testing.T) {
	server := scripted.New(served)
	client := connect(t, server)
	mapper := restmapper.New(client)
	requireMissing(t, mapper, "none")
	old := weak.Make(client.Latest())
	server.Serve(served + "\ncnat.example.com/v1 ats at At")
	_, err := mapper.Resource(t.Context(), "ats")
	require.NoError(t, err)
	require.Positive(t, mapper.Misses())
	for range 10 {
		runtime.GC()
	}
	assert.Nil(t, old.Value())
}

func TestMapper_ConcurrentMissesShareRequests(t *testing.T) {
	mapper, server := serve(t, served)
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
	assert.Less(t, server.Discoveries(), 25)
}
