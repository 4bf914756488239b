package restmapper_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inMemory answers requests by a handler without a network, so that it works where time stands still.
type inMemory struct {
	http.Handler
	mu *sync.Mutex // one request at a time
}

func (h inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	response := answer.Result()
	response.Request = r
	return response, nil
}

// unscripted is a server in memory that counts all requests.
func unscripted(t *testing.T, lines *string) (mapper *restmapper.Mapper, client *discovery.Client, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	client = connect(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","items":[%s]}`, groups(*lines, r.URL.Path == "/api"))
	})
	return restmapper.New(client), client, requests
}

func connect(t *testing.T, handle http.HandlerFunc) *discovery.Client {
	t.Helper()
	conn, err := transport.New("https://server.example", &http.Client{Transport: inMemory{handle, &sync.Mutex{}}}, nil)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return discovery.New(conn, nil)
}

func requireMissing(t *testing.T, mapper *restmapper.Mapper, name string) {
	t.Helper()
	_, err := mapper.Resource(t.Context(), name)
	require.True(t, meta.IsNoMatchError(err), "%v", err)
}

func TestMapper_SearchesLessOftenForMissingName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := served
		mapper, _, requests := unscripted(t, &lines)
		_, err := mapper.Resource(t.Context(), "pods")
		require.NoError(t, err)
		began := time.Now()
		asked := requests.Load()
		var when []time.Duration
		for range 10_000 { // ten seconds
			requireMissing(t, mapper, "deploymnets")
			if now := requests.Load(); now != asked {
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
		asked = requests.Load()
		requireMissing(t, mapper, "deploymnets")
		time.Sleep(50 * time.Millisecond)
		requireMissing(t, mapper, "deploymnets")
		assert.Equal(t, asked+4, requests.Load(), "a name that is not looked up is removed")
		_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Kind: "deploymnets"})
		require.True(t, meta.IsNoMatchError(err))
		assert.Equal(t, asked+6, requests.Load(), "a kind is not a resource of the same name")
	})
}

func TestMapper_FindsNewResourceAfterMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := served
		mapper, _, _ := unscripted(t, &lines)
		requireMissing(t, mapper, "ats")
		lines += "\ncnat.example.com/v1 ats at At"
		requireMissing(t, mapper, "ats")
		time.Sleep(50 * time.Millisecond)
		_, err := mapper.Resource(t.Context(), "ats")
		require.NoError(t, err)
	})
}

func TestMapper_NewSnapshotEndsMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := served
		mapper, client, requests := unscripted(t, &lines)
		for _, name := range []string{"ats", "bats"} {
			requireMissing(t, mapper, name)
		}
		lines += "\ncnat.example.com/v1 ats at At"
		time.Sleep(time.Millisecond)
		_, err := client.Refresh(t.Context())
		require.NoError(t, err)
		asked := requests.Load()
		_, err = mapper.Resource(t.Context(), "ats")
		require.NoError(t, err)
		for range 2 {
			_, err = mapper.Resource(t.Context(), "bats")
			require.ErrorContains(t, err, "did you mean ats.cnat.example.com", "the error is that of the new snapshot")
		}
		assert.Equal(t, asked, requests.Load(), "nobody asked the server")
		time.Sleep(50 * time.Millisecond)
		requireMissing(t, mapper, "bats")
		assert.Greater(t, requests.Load(), asked, "the miss ended when the first one had to")
	})
}

func TestMapper_MissesTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := "/v1 pods pod Pod po"
		mapper, _, requests := unscripted(t, &lines)
		began := time.Now()
		for i := range 1100 {
			requireMissing(t, mapper, fmt.Sprintf("none%d", i))
			require.LessOrEqual(t, mapper.Misses(), 1024)
		}
		assert.LessOrEqual(t, float64(requests.Load()), 300+2+50*time.Since(began).Seconds())
		time.Sleep(20 * time.Second)
		requireMissing(t, mapper, "another")
		assert.Equal(t, 1, mapper.Misses(), "the others have expired")
	})
}

func TestMapper_MissesHoldNoSnapshot(t *testing.T) {
	lines := served
	mapper, client, _ := unscripted(t, &lines)
	requireMissing(t, mapper, "none")
	old := weak.Make(client.Latest())
	lines += "\ncnat.example.com/v1 ats at At"
	_, err := mapper.Resource(t.Context(), "ats")
	require.NoError(t, err)
	require.Positive(t, mapper.Misses())
	for range 10 {
		runtime.GC()
	}
	assert.Nil(t, old.Value())
}

func TestMapper_ConcurrentMissesShareRequests(t *testing.T) {
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
