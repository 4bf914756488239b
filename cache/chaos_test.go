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
	configMaps, crds := resource(t, sandboxtest.Kubeconfig(t), "cm"), resource(t, sandboxtest.Kubeconfig(t), "crd")
	first := number(t, "ANYKIND_CHAOS_SEED", 1)
	for seed := first; seed < first+number(t, "ANYKIND_CHAOS_ROUNDS", 6); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if seed%6 == 3 { // the custom resource goes and comes back in mid-storm
				define(t, crds)
				notes := defined(t)
				storm(t, notes.In(namespace(t)), seed, func() {
					remove(t, crds)
					define(t, crds)
				})
				remove(t, crds)
				return
			}
			storm(t, configMaps.In(namespace(t)), seed, nil)
		})
	}
}

// define makes a kind of objects that are as free as ConfigMaps, and waits until the server serves it.
func define(t *testing.T, crds *dynamic.Resource) {
	t.Helper()
	_, err := crds.Create(t.Context(), &object{Object: map[string]any{
		"metadata": map[string]any{"name": "notes.storm.example.com"},
		"spec": map[string]any{
			"group": "storm.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "notes", "kind": "Note"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}, nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "notes.storm.example.com", dynamic.Condition("Established"))
	require.NoError(t, err)
}

// defined gives a handle on the kind once the server tells of it, which may be a moment after it is Established.
func defined(t *testing.T) *dynamic.Resource {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: sandboxtest.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	var notes *dynamic.Resource
	require.Eventually(t, func() bool {
		notes, err = client.Resource(t.Context(), "notes.storm.example.com")
		return err == nil
	}, patience, 50*time.Millisecond)
	return notes
}

// remove deletes the kind and waits until it is gone.
func remove(t *testing.T, crds *dynamic.Resource) {
	t.Helper()
	_, err := crds.Delete(t.Context(), "notes.storm.example.com", nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "notes.storm.example.com", dynamic.Gone())
	require.NoError(t, err)
}

// storm is one round; disaster strikes half-way.
func storm(t *testing.T, direct *dynamic.Resource, seed uint64, disaster func()) {
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
	for i := range 120 {
		if i == 60 && disaster != nil {
			disaster()
		}
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
	assert.Positive(t, proxy.Connections())
	cancel()
	busy.Wait()
	client.Close()
	assert.Eventually(t, func() bool { return proxy.Connections() == 0 }, patience, 10*time.Millisecond, "connections are left behind")
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
		_, err = to.Create(t.Context(), stormy(to, name), nil)
	default:
		_, err = to.Apply(t.Context(), stormy(to, name, strconv.Itoa(rng.Int())), &metav1.ApplyOptions{FieldManager: "storm"})
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		require.NoError(t, err)
	}
}

// stormy is an object of the resource that is written to.
func stormy(to *dynamic.Resource, name string, values ...string) *object {
	obj := configMap(name, values...)
	obj.SetGroupVersionKind(to.Mapping().GVK)
	return obj
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
