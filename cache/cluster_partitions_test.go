package cache_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
)

// drawShard returns some of eight ranges.
func drawShard(random *rand.Rand) shard.Selector {
	drawn := shard.New(shard.UID)
	for _, eighth := range shard.Split(shard.UID, 8) {
		if random.IntN(2) == 0 {
			drawn = drawn.Union(eighth)
		}
	}
	return drawn
}

// TestCache_ScopeChanges draws shards and namespaces of a running cache while its objects change. In between the cache must have what
// a list of the server has, and what a consumer has made of the changes.
func TestCache_ScopeChanges(t *testing.T) {
	client := testclient.Connect(t, "admin")
	for name, configure := range map[string][]func(*transport.Config){"by the server": nil, "by the client": {testclient.WithoutSharding}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if configure == nil {
				testclient.NeedSharding(t, client)
			}
			namespaces := []string{namespace(t), namespace(t)}
			source := testclient.Resource(t, testclient.Connect(t, "admin", configure...), "cm").AllNamespaces()
			c := cache.New(source, &cache.Options[object]{Namespaces: []string{}, Shard: shard.New(shard.UID)})
			run(t, c)
			require.NoError(t, c.WaitForSync(t.Context()))
			changeScopes(t, c, testclient.Resource(t, client, "cm"), namespaces)
			assert.Eventually(t, func() bool {
				byServer, isKnown := c.IsSharded()
				return isKnown && byServer == (configure == nil)
			}, 30*time.Second, time.Millisecond)
		})
	}
}

func changeScopes(t *testing.T, c *cache.Cache[object], configMaps *dynamic.Resource, namespaces []string) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	consumed := consume(t, c)
	written := c.TrackWrites(configMaps)
	selected := shard.New(shard.UID)
	var chosen []string
	for round := range 60 {
		switch random.IntN(3) {
		case 0:
			selected = drawShard(random)
			require.NoError(t, c.SetShard(selected))
		case 1:
			chosen = slices.Clone(namespaces)[:random.IntN(3)]
			require.NoError(t, c.SetNamespaces(chosen...))
		default:
		}
		for range random.IntN(12) {
			writeDrawn(t, random, written.Namespace(namespaces[random.IntN(2)]))
		}
		if random.IntN(3) > 0 {
			continue
		}
		require.NoError(t, c.WaitForSync(t.Context()))
		require.NoError(t, c.WaitForWrites(t.Context()))
		want := map[string]string{}
		for _, namespace := range chosen {
			for obj, err := range configMaps.Namespace(namespace).List(t.Context(), nil) {
				require.NoError(t, err)
				if selected.Matches(namespace, obj.GetUID()) {
					want[namespace+"/"+obj.GetName()] = obj.GetResourceVersion()
				}
			}
		}
		require.Equal(t, want, versionsByKey(c.List("", nil)), "round %d", round)
		consumed.requireEqual(t, want)
	}
}

// writeDrawn creates, changes, replaces or deletes one of ten objects.
func writeDrawn(t *testing.T, random *rand.Rand, configMaps *dynamic.Resource) {
	t.Helper()
	name := fmt.Sprintf("cm-%d", random.IntN(10))
	switch random.IntN(3) {
	case 0:
		_, err := configMaps.Delete(t.Context(), name, nil)
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	default:
		obj := configMap(name, fmt.Sprint(random.Int()))
		_, err := configMaps.Create(t.Context(), obj, nil)
		if apierrors.IsAlreadyExists(err) {
			_, err = configMaps.Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"v0":"%d"}}`, random.Int()), nil)
		}
		require.NoError(t, err)
	}
}

// consumer has what the changes of a cache tell.
type consumer struct {
	mu    sync.Mutex
	known map[string]*object
}

func consume(t *testing.T, c *cache.Cache[object]) *consumer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	state := &consumer{known: map[string]*object{}}
	var done sync.WaitGroup
	done.Go(func() {
		for change := range c.Changes(ctx) {
			state.handle(t, change)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return state
}

// handle applies a change, which must fit the state: no version goes back, and nothing is added or removed twice.
func (s *consumer) handle(t *testing.T, change cache.Change[object]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.Object == nil {
		return
	}
	name := change.Object.GetNamespace() + "/" + change.Object.GetName()
	old := s.known[name]
	switch change.Type {
	case watch.Added:
		assert.Nil(t, old, "%s is added twice", name)
	case watch.Modified:
		if assert.NotNil(t, old, "%s is modified before it is added", name) {
			assert.Equal(t, old.GetUID(), change.Object.GetUID())
			order, err := resourceversion.Compare(old.GetResourceVersion(), change.Object.GetResourceVersion())
			assert.NoError(t, err)
			assert.LessOrEqual(t, order, 0, "%s goes back", name)
		}
	default:
		assert.Contains(t, []watch.EventType{watch.Deleted, cache.Removed}, change.Type)
		assert.NotNil(t, old, "%s is %s before it is added", name, strings.ToLower(string(change.Type)))
		delete(s.known, name)
		return
	}
	s.known[name] = change.Object
}

func (s *consumer) requireEqual(t *testing.T, want map[string]string) {
	t.Helper()
	var got map[string]string
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = versionsByKey(slices.Collect(maps.Values(s.known)))
		return maps.Equal(want, got)
	}, patience, 10*time.Millisecond, "want %v", want)
}

func versionsByKey(objects []*object) map[string]string {
	all := map[string]string{}
	for _, obj := range objects {
		all[cache.KeyOf(obj).String()] = obj.GetResourceVersion()
	}
	return all
}
