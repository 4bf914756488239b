package cache_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/faultproxy"
	"github.com/anykind/anykind/internal/sandboxtest"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// TestACacheIsRightAfterEveryStorm writes while everything that can break breaks, and then compares. The seed of a
// round is in its name: ANYKIND_CHAOS_SEED=n ANYKIND_CHAOS_ROUNDS=1 plays it again.
func TestACacheIsRightAfterEveryStorm(t *testing.T) {
	configMaps := resource(t, sandboxtest.Kubeconfig(t), "cm")
	first := number(t, "ANYKIND_CHAOS_SEED", 1)
	for seed := first; seed < first+number(t, "ANYKIND_CHAOS_ROUNDS", 6); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { storm(t, configMaps.In(namespace(t)), seed) })
	}
}

// storm is one round.
func storm(t *testing.T, direct *dynamic.Resource, seed uint64) {
	proxy := faultproxy.New(t, seed)
	path, err := direct.Path("")
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: proxy.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	behind, _, err := client.At(t.Context(), path)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	t.Cleanup(func() { cancel(); busy.Wait() })
	lazily := dynamic.As[unstructured.Lazy](behind)
	copies := []*mirror{mirrorOf(ctx, t, &busy, behind), mirrorOf(ctx, t, &busy, lazily), mirrorOf(ctx, t, &busy, lazily), mirrorOf(ctx, t, &busy, behind)}

	proxy.Storm()
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a script that can be repeated
	for range 120 {
		write(t, direct, rng)
		time.Sleep(time.Duration(rng.IntN(15)) * time.Millisecond)
	}
	if seed%6 == 0 {
		sandboxtest.Compact(t)
		sandboxtest.RestartAPIServer(t, true)
	}
	write(t, direct, rng)
	proxy.Calm()
	t.Logf("faults met: %v", proxy.Met())

	want := map[string]string{}
	for obj, err := range direct.List(ctx, nil) {
		require.NoError(t, err)
		want[obj.GetName()] = obj.GetResourceVersion()
	}
	for i, c := range copies {
		assert.Eventually(t, func() bool { return maps.Equal(want, c.shows()) }, patience, 10*time.Millisecond,
			"cache %d does not show what the server has", i)
		assert.Equal(t, want, c.shows())
		assert.Eventually(t, func() bool { return maps.Equal(want, c.told()) }, patience, 10*time.Millisecond,
			"a last state was not told by cache %d", i)
	}
}

// mirror is a cache and a consumer of its changes: the versions by name that it shows, and those that it told.
type mirror struct{ shows, told func() map[string]string }

func mirrorOf[T any, P cache.Object[T]](ctx context.Context, t *testing.T, busy *sync.WaitGroup, source cache.Source[T]) *mirror {
	t.Helper()
	c := cache.New[T, P](source, nil)
	busy.Go(func() { _ = c.Run(ctx) })
	require.NoError(t, c.Sync(ctx))
	w := &witness{t: t, versions: map[string]string{}, uids: map[string]types.UID{}}
	busy.Go(func() {
		for change := range c.Changes(ctx) {
			if obj := P(change.Object); obj != nil {
				w.hear(change.Type, obj.GetName(), obj.GetUID(), obj.GetResourceVersion())
			}
		}
	})
	return &mirror{told: w.states, shows: func() map[string]string {
		all := map[string]string{}
		for _, obj := range c.All() {
			all[P(obj).GetName()] = P(obj).GetResourceVersion()
		}
		return all
	}}
}

// write does one thing to one of a few objects.
func write(t *testing.T, to *dynamic.Resource, rng *rand.Rand) {
	t.Helper()
	name := fmt.Sprintf("storm-%02d", rng.IntN(25))
	var err error
	switch rng.IntN(4) {
	case 0:
		_, err = to.Delete(t.Context(), name, nil)
	case 1:
		_, err = to.Create(t.Context(), configMap(name), nil)
	default:
		_, err = to.Apply(t.Context(), configMap(name, strconv.Itoa(rng.Int())), &metav1.ApplyOptions{FieldManager: "storm"})
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		require.NoError(t, err)
	}
}

// witness is a consumer that checks that its story makes sense.
type witness struct {
	t        *testing.T
	mu       sync.Mutex
	versions map[string]string
	uids     map[string]types.UID
}

func (w *witness) hear(kind watch.EventType, name string, uid types.UID, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.uids[name]
	if kind == watch.Added {
		assert.Empty(w.t, known, "%s is added twice", name)
	} else {
		assert.Equal(w.t, known, uid, "%s is %s, but another object", name, kind)
	}
	if kind == watch.Modified {
		assert.NotEqual(w.t, w.versions[name], version, "%s is told twice", name)
	}
	assert.False(w.t, older(version, w.versions[name]), "time ran backwards for %s", name)
	if kind == watch.Deleted {
		delete(w.versions, name)
		delete(w.uids, name)
	} else {
		w.versions[name], w.uids[name] = version, uid
	}
}

func (w *witness) states() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.versions)
}

func older(a, b string) bool {
	first, _ := strconv.ParseUint(a, 10, 64)
	second, _ := strconv.ParseUint(b, 10, 64)
	return first < second
}
