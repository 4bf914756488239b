package cache_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/faultproxy"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// site is where a storm strikes: what is written directly is read, by caches and lists, through a proxy.
type site struct {
	proxy          *faultproxy.Proxy
	direct, behind *dynamic.Resource
	client         *dynamic.Client
	mirrors        []*mirror
	busy           sync.WaitGroup
	stop           context.CancelFunc
}

func siteOf(t *testing.T, direct *dynamic.Resource, seed uint64) *site {
	t.Helper()
	s := &site{direct: direct, proxy: faultproxy.New(t, seed)}
	if seed%4 >= 2 {
		s.proxy.WithoutWatchList()
	}
	cfg, err := s.proxy.Config()
	require.NoError(t, err)
	s.client, err = dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	path, err := direct.Path("")
	require.NoError(t, err)
	s.behind, _, err = s.client.At(t.Context(), path)
	require.NoError(t, err)
	return s
}

// follow starts the caches.
func (s *site) follow(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	t.Cleanup(func() { stop(); s.busy.Wait() })
	lazily := dynamic.As[unstructured.Lazy](s.behind)
	for range 2 {
		s.mirrors = append(s.mirrors,
			mirrorOf(ctx, t, &s.busy, s.behind, func(obj *object) (*object, error) { return obj, nil }),
			mirrorOf(ctx, t, &s.busy, lazily, (*unstructured.Lazy).Object))
	}
}

// storm writes while everything that can break breaks; disaster strikes half-way.
func (s *site) storm(t *testing.T, of *strength, seed uint64, disaster func()) {
	t.Helper()
	s.proxy.Storm(of.reach)
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer func() { stop(); reading.Wait() }()
	reading.Go(func() { s.read(ctx, t, of) })

	of.write(t, s.direct, seed, 0)
	if disaster != nil {
		disaster()
	}
	of.write(t, s.direct, seed, 1)
	if seed%6 == 0 {
		cluster.Compact(t)
		cluster.RestartAPIServer(t, true)
	}
	of.writeOne(t, s.direct, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // a script that can be repeated
	s.proxy.Calm()
}

// read lists all objects again and again. A list that does not fail must be whole.
func (s *site) read(ctx context.Context, t *testing.T, of *strength) {
	t.Helper()
	whole, broken := 0, 0
	pages := s.behind.Paging(&dynamic.Paging{Expired: func(error) dynamic.Expiry { return dynamic.GoOn }})
	for ctx.Err() == nil {
		seen, failed := map[string]bool{}, false
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
			assert.Empty(t, of.missing(seen), "a list that did not fail is without these")
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Logf("lists in the storm: %d whole, %d broken; faults met: %v", whole, broken, s.proxy.Met())
}

// compare waits until every cache and list is what the server has.
func (s *site) compare(t *testing.T) {
	t.Helper()
	objects := objectsOf(t, s.direct)
	want := versionsOf(objects)
	for i, m := range s.mirrors {
		require.Eventually(t, func() bool { return maps.Equal(want, m.shows()) }, patience, 10*time.Millisecond,
			"cache %d does not show what the server has", i)
		require.Eventually(t, func() bool { return maps.Equal(want, m.states()) }, patience, 10*time.Millisecond,
			"a last state was not told by cache %d", i)
		require.Equal(t, objects, m.holds(), "cache %d", i)
	}
	assert.Equal(t, objects, objectsOf(t, s.behind))
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

// clear deletes everything and waits until the caches, which go on, keep nothing of it.
func (s *site) clear(t *testing.T, of *strength) {
	t.Helper()
	for _, m := range s.mirrors {
		m.end()
	}
	of.remove(t, s.direct)
	assert.Empty(t, objectsOf(t, s.direct))
	for i, m := range s.mirrors {
		require.Eventually(t, func() bool { return len(m.states()) == 0 && m.entries() == 0 }, patience, 10*time.Millisecond,
			"cache %d keeps something of what is no more", i)
		// What was read last, and was told last, may wait in variables for what comes next.
		require.Eventually(t, func() bool { return m.alive() <= 8 }, patience, 100*time.Millisecond,
			"states of objects that are no more stay in memory behind cache %d", i)
		m.begin()
	}
}

// leave ends everything and waits until the connections are closed.
func (s *site) leave(t *testing.T) {
	t.Helper()
	assert.Positive(t, s.proxy.Connections())
	s.stop()
	s.busy.Wait()
	s.client.Close()
	assert.Eventually(t, func() bool { return s.proxy.Connections() == 0 }, patience, 10*time.Millisecond, "connections are left behind")
}
