package manager_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/compat/controllerruntime/manager"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// shardedWork records the reconciles of all managers.
type shardedWork struct {
	t  *testing.T
	mu sync.Mutex
	// busy has the manager that reconciles a key.
	busy map[types.NamespacedName]string
	// seen has the resourceVersion of the last reconcile of a key, "" for a missing object.
	seen map[types.NamespacedName]string
	// counts has the number of keys by manager, since the last call of reset.
	counts map[string]map[types.NamespacedName]bool
	hang   types.NamespacedName // its reconciles last until the end of their ctx
	ended  chan error           // receives the causes of their ends
}

func newShardedWork(t *testing.T) *shardedWork {
	t.Helper()
	return &shardedWork{
		t: t, busy: map[types.NamespacedName]string{}, seen: map[types.NamespacedName]string{},
		counts: map[string]map[types.NamespacedName]bool{}, ended: make(chan error, 100),
	}
}

func (w *shardedWork) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.counts)
}

func (w *shardedWork) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.counts[name])
}

// hasAll reports whether a manager has reconciled each key of versions since the last call of reset.
func (w *shardedWork) hasAll(name string, versions map[types.NamespacedName]string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range versions {
		if !w.counts[name][key] {
			return false
		}
	}
	return true
}

func (w *shardedWork) hasSeen(versions map[types.NamespacedName]string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Equal(versions, w.seen)
}

// begin begins a reconcile, and reports whether it is to hang.
func (w *shardedWork) begin(name string, key types.NamespacedName) (hangs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if by, isBusy := w.busy[key]; isBusy {
		assert.Failf(w.t, "two reconciles at the same time", "%s by %s and %s", key, by, name)
	}
	w.busy[key] = name
	if w.counts[name] == nil {
		w.counts[name] = map[types.NamespacedName]bool{}
	}
	w.counts[name][key] = true
	return key == w.hang
}

func (w *shardedWork) end(key types.NamespacedName, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, key)
	w.seen[key] = version
	if version == "" {
		delete(w.seen, key)
	}
}

// start starts a manager whose controller reconciles ConfigMaps with a label.
func (w *shardedWork) start(admin *dynamic.Client, name string, group *sharding.Group, label string) (stop func()) {
	w.t.Helper()
	skipsNames := true
	mgr, err := ctrl.NewManager(manager.Configure(controllerruntime.New(w.t.Context(), admin), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skipsNames},
		Cache: ctrlcache.Options{ByObject: map[ctrlclient.Object]ctrlcache.ByObject{
			&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"work": label})},
		}},
	}))
	require.NoError(w.t, err)
	reconciler, err := controllerruntime.NewShardedReconciler(mgr.GetCache(), group, &corev1.ConfigMap{},
		reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			if w.begin(name, request.NamespacedName) {
				<-ctx.Done()
				w.ended <- context.Cause(ctx)
			}
			var obj corev1.ConfigMap
			err := mgr.GetClient().Get(ctx, request.NamespacedName, &obj)
			time.Sleep(time.Millisecond)
			w.end(request.NamespacedName, obj.ResourceVersion)
			return reconcile.Result{}, ctrlclient.IgnoreNotFound(err)
		}))
	require.NoError(w.t, err)
	require.NoError(w.t, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).WatchesRawSource(reconciler).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(reconciler))
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- group.Run(ctx, mgr.Start) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-ended)
		mgr.GetHTTPClient().CloseIdleConnections()
	})
}

// TestShardedReconciler_ManagersDivideObjects starts, stops and disturbs two managers while objects are created, changed and deleted.
func TestShardedReconciler_ManagersDivideObjects(t *testing.T) {
	admin := client.Connect(t, "admin")
	for _, by := range []shard.Field{shard.UID, shard.Namespace} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			testManagers(t, admin, by)
		})
	}
}

func testManagers(t *testing.T, admin *dynamic.Client, by shard.Field) {
	t.Helper()
	namespaces := []string{client.NewNamespace(t, admin), client.NewNamespace(t, admin), client.NewNamespace(t, admin), client.NewNamespace(t, admin)}
	configMaps := client.Resource(t, admin, "configmaps")
	leases := client.Resource(t, admin, "leases.coordination.k8s.io").Namespace(namespaces[0])
	versions := map[types.NamespacedName]string{}
	count := 32
	write := func(round string) {
		for i := range count {
			written, _, err := configMaps.Namespace(namespaces[i%4]).Upsert(t.Context(), fmt.Sprintf("object-%d", i), func(obj *unstructured.Object) error {
				obj.SetLabels(map[string]string{"work": namespaces[0]})
				return unstructured.Set(obj, round, "data", "round")
			}, nil)
			require.NoError(t, err)
			versions[cache.KeyOf(written)] = written.GetResourceVersion()
		}
	}
	w := newShardedWork(t)
	members := func(name string) (*sharding.Group, func()) {
		group, err := sharding.New(leases, "work", &sharding.Options{
			By: by, Identity: name, LeaseDuration: 2 * time.Second, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 150 * time.Millisecond,
			Namespaces: func(context.Context) ([]string, error) { return namespaces, nil },
		})
		require.NoError(t, err)
		return group, w.start(admin, name, group, namespaces[0])
	}
	eventually := func(condition func() bool, text string) {
		t.Helper()
		require.Eventually(t, condition, time.Minute, 5*time.Millisecond, text)
	}
	write("one")
	_, stopOne := members("one")
	defer stopOne()
	eventually(func() bool { return w.hasSeen(versions) && w.hasAll("one", versions) }, "one has all")

	two, stopTwo := members("two")
	defer stopTwo()
	eventually(func() bool {
		share := two.Health().Share()
		return share > 0 && share < 1 && w.count("two") > 0
	}, "two has gained a share")
	write("two")
	eventually(func() bool { return w.hasSeen(versions) }, "changes are reconciled")

	// The deleted object gets no successor: by UID, that may have a different member at the same time.
	deleted := types.NamespacedName{Namespace: namespaces[3], Name: "object-31"}
	_, err := configMaps.Namespace(deleted.Namespace).Delete(t.Context(), deleted.Name, nil)
	require.NoError(t, err)
	delete(versions, deleted)
	count--
	eventually(func() bool { return w.hasSeen(versions) }, "the deletion is reconciled")

	w.reset()
	write("three")
	stopOne()
	eventually(func() bool { return w.hasSeen(versions) && w.hasAll("two", versions) }, "two has gained all")
	if by == shard.Namespace { // once suffices
		first := types.NamespacedName{Namespace: namespaces[0], Name: "object-0"}
		endLease(t, w, first, two, leases, func() { write("four") })
		eventually(func() bool { return w.hasSeen(versions) }, "the member joins again and continues")
	}
}

// endLease deletes the Lease of a member while a reconcile hangs: its ctx ends.
func endLease(t *testing.T, w *shardedWork, key types.NamespacedName, member *sharding.Group, leases *dynamic.Resource, write func()) {
	t.Helper()
	w.mu.Lock()
	w.hang = key
	w.mu.Unlock()
	write()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.busy[key] == "two"
	}, time.Minute, 5*time.Millisecond, "a reconcile hangs")
	_, err := leases.Delete(t.Context(), member.Health().Member, nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-w.ended, leaderelection.ErrLeaseLost)
	w.mu.Lock()
	w.hang = types.NamespacedName{}
	w.mu.Unlock()
}

func TestNewShardedReconciler_Misuse(t *testing.T) {
	admin := client.Connect(t, "admin")
	objects, err := controllerruntime.New(t.Context(), admin).NewCache(nil, ctrlcache.Options{})
	require.NoError(t, err)
	group, err := sharding.New(client.Resource(t, admin, "leases.coordination.k8s.io").Namespace("default"), "work", nil)
	require.NoError(t, err)
	_, err = controllerruntime.NewShardedReconciler(struct{ ctrlcache.Cache }{}, group, &corev1.ConfigMap{}, nil)
	require.EqualError(t, err, "a sharded reconciler needs a cache of Constructors.NewCache, not a struct { cache.Cache }")
	r, err := controllerruntime.NewShardedReconciler(objects, group, &corev1.ConfigMap{}, nil)
	require.NoError(t, err)
	_, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}})
	require.EqualError(t, err, "reconcile shop/web: the sharded reconciler has no source (pass it to WatchesRawSource, too)")
	err = r.Start(t.Context(), nil)
	require.ErrorContains(t, err, "start a sharded reconciler of ConfigMap: sharding leases.coordination.k8s.io \"work\": a controller needs Run")
	require.ErrorContains(t, r.Start(t.Context(), nil), "start a sharded reconciler of ConfigMap")
}
