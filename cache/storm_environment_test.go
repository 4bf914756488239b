package cache_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/faultproxy"
	"github.com/anykind/anykind/internal/testing/workload"
	"github.com/anykind/anykind/unstructured"
)

// environment is a resource that is written directly and read, by caches and lists, through a faulty proxy. With every other seed the
// reads are protobuf.
type environment struct {
	proxy           *faultproxy.Proxy
	direct, proxied *dynamic.Resource
	client          *dynamic.Client
	caches          []*testCache
	busy            sync.WaitGroup
	stop            context.CancelFunc
}

func newEnvironment(t *testing.T, direct *dynamic.Resource, seed uint64) *environment {
	t.Helper()
	s := &environment{direct: direct, proxy: faultproxy.New(t, seed)}
	if seed%4 >= 2 {
		s.proxy.WithoutWatchList()
	}
	cfg, err := s.proxy.Config()
	require.NoError(t, err)
	cfg.Protobuf = seed%2 == 0
	s.client, err = dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	path, err := direct.Path("")
	require.NoError(t, err)
	s.proxied, _, err = s.client.ForPath(t.Context(), path)
	require.NoError(t, err)
	return s
}

// follow starts the caches.
func (s *environment) follow(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	t.Cleanup(func() { stop(); s.busy.Wait() })
	lazily := dynamic.As[unstructured.Lazy](s.proxied)
	whole := func(obj *object) (*object, error) { return obj, nil }
	for range 2 {
		s.caches = append(s.caches,
			newTestCache(ctx, t, &s.busy, s.proxied, nil, whole),
			newTestCache(ctx, t, &s.busy, lazily, nil, (*unstructured.Lazy).Object))
	}
	s.caches = append(s.caches,
		newTestCache(ctx, t, &s.busy, s.proxied, packed.New[object](), whole),
		newTestCache(ctx, t, &s.busy, lazily, packed.New[unstructured.Lazy](), (*unstructured.Lazy).Object))
}

// storm writes while the proxy injects faults, and calls midway half-way.
func (s *environment) storm(t *testing.T, of *workload.Workload, seed uint64, midway func()) {
	t.Helper()
	s.proxy.Storm(of.Reach)
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer func() { stop(); reading.Wait() }()
	reading.Go(func() { s.read(ctx, t, of) })

	of.Write(t, s.direct, seed, 0)
	if midway != nil {
		midway()
	}
	of.Write(t, s.direct, seed, 1)
	if seed%6 == 0 {
		cluster.Compact(t)
		cluster.RestartAPIServer(t, true)
	}
	of.WriteOne(t, s.direct, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // a script that can be repeated
	s.proxy.Calm()
}

// read lists all objects repeatedly. A list without an error must be complete.
func (s *environment) read(ctx context.Context, t *testing.T, of *workload.Workload) {
	t.Helper()
	whole := 0
	broken := 0
	pages := s.proxied.WithPageOptions(&dynamic.PageOptions{OnExpired: func(error) dynamic.ExpiryPolicy { return dynamic.ExpiryContinue }})
	for ctx.Err() == nil {
		seen := map[string]bool{}
		failed := false
		for obj, err := range pages.List(ctx, &metav1.ListOptions{Limit: 250}) {
			if failed = err != nil; !failed {
				assert.False(t, seen[obj.GetName()], "%s is listed twice", obj.GetName())
				seen[obj.GetName()] = true
			}
		}
		if failed {
			broken++
		} else {
			whole++
			assert.Empty(t, of.Missing(seen), "a list that did not fail is without these")
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Logf("lists in the storm: %d whole, %d broken; faults met: %v", whole, broken, s.proxy.Faults())
}

// stormPatience bounds how long a cache may take after a storm: six relist thousands of objects at once, which takes a minute
// where other programs have most of the processors.
const stormPatience = 5 * time.Minute

// compare waits until every cache and list equals the server's objects.
func (s *environment) compare(t *testing.T) {
	t.Helper()
	objects := objectsOf(t, s.direct)
	want := versionsOf(objects)
	for i, m := range s.caches {
		require.Eventually(t, func() bool { return maps.Equal(want, m.cachedVersions()) }, stormPatience, 10*time.Millisecond,
			"cache %d differs from the server, health: %v", i, m.health)
		require.Eventually(t, func() bool { return maps.Equal(want, m.deliveredVersions()) }, stormPatience, 10*time.Millisecond,
			"a last state was not delivered by cache %d", i)
		require.Equal(t, objects, m.cachedObjects(), "cache %d", i)
	}
	assert.Equal(t, objects, objectsOf(t, s.proxied))
}

func objectsOf(t *testing.T, listed *dynamic.Resource) map[string]*object {
	t.Helper()
	objects := map[string]*object{}
	for obj, err := range listed.List(t.Context(), nil) {
		require.NoError(t, err)
		objects[obj.GetName()] = obj
	}
	return objects
}

func versionsOf(objects map[string]*object) map[string]string {
	versions := map[string]string{}
	for name, obj := range objects {
		versions[name] = obj.GetResourceVersion()
	}
	return versions
}

// clear deletes all objects and waits until the caches, which continue to run, keep nothing of them.
func (s *environment) clear(t *testing.T, of *workload.Workload) {
	t.Helper()
	for _, m := range s.caches {
		m.end()
	}
	of.Remove(t, s.direct)
	assert.Empty(t, objectsOf(t, s.direct))
	for i, m := range s.caches {
		require.Eventually(t, func() bool { return len(m.deliveredVersions()) == 0 && m.entries() == 0 }, stormPatience, 10*time.Millisecond,
			"cache %d keeps something of deleted objects", i)
		// Local variables may still have the last objects that were read or delivered, and a packed cache keeps 32.
		require.Eventually(t, func() bool { return m.alive() <= 40 }, stormPatience, 100*time.Millisecond,
			"states of deleted objects stay in memory with cache %d", i)
		m.begin()
	}
}

// close stops the caches and waits until the connections are closed.
func (s *environment) close(t *testing.T) {
	t.Helper()
	assert.Positive(t, s.proxy.Connections())
	s.stop()
	s.busy.Wait()
	s.client.Close()
	assert.Eventually(t, func() bool { return s.proxy.Connections() == 0 }, patience, 10*time.Millisecond, "connections to the proxy are left")
}
