package storagemigration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/storagemigration"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const kills = 10

// TestMigrate_ConvergesAfterKills migrates objects of three storage versions, while others write them. The process is killed at ten
// random requests. ANYKIND_MIGRATION_OBJECTS is the number of objects.
func TestMigrate_ConvergesAfterKills(t *testing.T) {
	t.Parallel()
	objects := 300
	if text := os.Getenv("ANYKIND_MIGRATION_OBJECTS"); text != "" {
		var err error
		objects, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	e := newEnvironment(t)
	for n, version := range []string{"v1", "v2", "v3"} {
		if n > 0 {
			e.setStorage(t, version)
		}
		e.createParallel(t, version, objects/3)
	}
	assert.Equal(t, map[string]int{"v1": objects / 3, "v2": objects / 3, "v3": objects / 3}, count(e.stored(t)))

	w := startWriters(t, e, objects/3, seed)
	start := time.Now()
	for range kills {
		err := e.migrateAndKill(t, random.Int64N(int64(objects*8/10)))
		require.ErrorIs(t, err, errKilled)
	}
	killed := time.Since(start)
	start = time.Now()
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{Method: storagemigration.ByClient, QPS: -1})
	require.NoError(t, err)
	t.Logf("%d killed migrations: %v, the last one: %v, %+v", kills, killed, time.Since(start), *result)
	w.stop(t)

	assert.Equal(t, []string{"v3"}, e.storedVersions(t))
	assert.Equal(t, []string{"v1", "v2"}, result.Pruned)
	assert.Len(t, count(e.stored(t)), 1)
	assert.Equal(t, w.existing(objects/3), e.counts(t))
	e.stopServing(t, "v1")
	e.stopServing(t, "v2")
	_, err = storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{QPS: -1})
	require.NoError(t, err)
	e.removeVersions(t, "v3")
	assert.Equal(t, w.existing(objects/3), e.counts(t))
}

// TestMigrate_ConvergesAfterEveryRequest kills the process at every request.
func TestMigrate_ConvergesAfterEveryRequest(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 4)
	versions := []string{"v2", "v3", "v1"}
	isKilled := true
	for requests := int64(0); isKilled; requests++ {
		version := versions[requests%3]
		e.setStorage(t, version)
		err := e.migrateAndKill(t, requests)
		if isKilled = err != nil; isKilled {
			require.ErrorIs(t, err, errKilled)
			_, err = storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
			require.NoError(t, err, "after %d requests", requests)
		}
		assert.Equal(t, map[string]int{version: 4}, count(e.stored(t)), "after %d requests", requests)
		assert.Equal(t, []string{version}, e.storedVersions(t), "after %d requests", requests)
		require.Less(t, requests, int64(50), "a migration without a kill")
	}
}

// TestMigrate_ServerDoesNotRespond ends a migration without a time-out.
func TestMigrate_ServerDoesNotRespond(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 20)
	e.setStorage(t, "v2")
	kill := &killer{onKill: func() {}}
	kill.left.Store(6)
	c := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			kill.next = next
			return kill
		}
	})
	kill.armed.Store(true)
	result, err := storagemigration.Migrate(t.Context(), c, e.name, &storagemigration.Options{Method: storagemigration.ByClient, Workers: 2})
	require.ErrorIs(t, err, errKilled)
	require.ErrorContains(t, err, "the server does not respond")
	assert.Less(t, result.Objects, 20, "the remaining objects are not attempted")
}

func (e *environment) createParallel(t *testing.T, version string, count int) {
	t.Helper()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < count; i += 8 {
				_, err := e.gears(version).Create(t.Context(), e.gear(fmt.Sprintf("%s-%d", version, i), version), nil)
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
}

// migrateAndKill migrates in a process that is killed after a number of requests.
func (e *environment) migrateAndKill(t *testing.T, requests int64) error {
	t.Helper()
	kill := &killer{}
	kill.left.Store(requests)
	c := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			kill.next = next
			return kill
		}
	})
	kill.armed.Store(true)
	// A process that is killed sends nothing any more.
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	kill.onKill = func() { cancel(errKilled) }
	_, err := storagemigration.Migrate(ctx, c, e.name, &storagemigration.Options{Method: storagemigration.ByClient, QPS: -1})
	return err
}

// killer ends all requests of a process after a number of requests. The last request reaches the server.
type killer struct {
	next   http.RoundTripper
	onKill func()
	armed  atomic.Bool
	left   atomic.Int64
}

var errKilled = errors.New("the process was killed")

func (k *killer) RoundTrip(req *http.Request) (*http.Response, error) {
	if !k.armed.Load() {
		return k.next.RoundTrip(req)
	}
	left := k.left.Add(-1)
	if left > 0 {
		return k.next.RoundTrip(req)
	}
	if left == 0 {
		if response, err := k.next.RoundTrip(req); err == nil {
			_ = response.Body.Close()
		}
		k.onKill()
	}
	return nil, errKilled
}

// writers change, create and delete objects until they are stopped. Each object has a single writer.
type writers struct {
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int64 // of acknowledged writes
	gone   map[string]bool
	done   int
}

func startWriters(t *testing.T, e *environment, perVersion int, seed uint64) *writers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writers{cancel: cancel, counts: map[string]int64{}, gone: map[string]bool{}}
	t.Cleanup(func() {
		cancel()
		w.all.Wait()
	})
	for n, written := range []string{"v1", "v2", "v3"} {
		random := rand.New(rand.NewPCG(seed, uint64(n)+1))
		w.all.Go(func() {
			for i := int64(1); ctx.Err() == nil; i++ {
				w.write(ctx, t, e, random, written, perVersion, i)
			}
		})
	}
	return w
}

// write sends one write by a random version.
func (w *writers) write(ctx context.Context, t *testing.T, e *environment, random *rand.Rand, written string, perVersion int, i int64) {
	gears := e.gears(fmt.Sprintf("v%d", random.IntN(3)+1))
	name := fmt.Sprintf("%s-%d", written, random.IntN(perVersion))
	operation := random.IntN(10)
	var err error
	request := context.WithoutCancel(ctx) // its result is always known
	switch {
	case w.isGone(name):
		return
	case operation == 0 && i < int64(perVersion):
		_, err = gears.Delete(request, name, nil)
	case operation == 1:
		name = fmt.Sprintf("%s-new-%d", written, i)
		obj := e.gear(name, written)
		_ = unstructured.Set(obj, i, "spec", "count")
		_, err = gears.Create(request, obj, nil)
	default:
		_, err = gears.Patch(request, name, types.MergePatchType, fmt.Appendf(nil, `{"spec": {"count": %d}}`, i), nil)
	}
	if !assert.NoError(t, err) {
		w.cancel()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	if operation == 0 && i < int64(perVersion) {
		w.gone[name] = true
		delete(w.counts, name)
		return
	}
	w.counts[name] = i
}

func (w *writers) isGone(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[name]
}

func (w *writers) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	w.all.Wait()
	t.Logf("%d concurrent writes, %d of them deletions", w.done, len(w.gone))
}

// existing returns the expected counts of all objects.
func (w *writers) existing(perVersion int) map[string]int64 {
	all := map[string]int64{}
	for _, version := range []string{"v1", "v2", "v3"} {
		for i := range perVersion {
			if name := fmt.Sprintf("%s-%d", version, i); !w.gone[name] {
				all[name] = 0
			}
		}
	}
	for name, n := range w.counts {
		all[name] = n
	}
	return all
}

// counts returns spec.count of all objects.
func (e *environment) counts(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for obj, err := range e.gears("v3").List(t.Context(), nil) {
		require.NoError(t, err)
		n, _, err := unstructured.Get[int64](obj, "spec", "count")
		require.NoError(t, err)
		all[obj.GetName()] = n
	}
	return all
}
