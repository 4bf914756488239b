package controller_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/objectkey"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// script is a source that emits what a test sends.
type script chan dynamic.Change[unstructured.Object]

func (script) Path(string) (string, error) { return "/api/v1/pods", nil }

func (s script) Follow(ctx context.Context, _ *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		for {
			select {
			case change := <-s:
				if !yield(change, nil) {
					return
				}
			case <-ctx.Done():
				yield(dynamic.Change[unstructured.Object]{}, ctx.Err())
				return
			}
		}
	}
}

func (s script) emit(kind watch.EventType, objects ...*unstructured.Object) {
	for _, obj := range objects {
		s <- dynamic.Change[unstructured.Object]{Type: kind, Object: obj}
	}
}

func (s script) sync() { s <- dynamic.Change[unstructured.Object]{Type: dynamic.Synced} }

// newScript returns a source and its cache, which runs until the test ends.
func newScript(t *testing.T) (script, *cache.Cache[unstructured.Object]) {
	t.Helper()
	source := make(script)
	c := cache.New(source, nil)
	go func() { _ = c.Run(t.Context()) }()
	return source, c
}

func version(obj *unstructured.Object, resourceVersion string) *unstructured.Object {
	changed := obj.DeepCopy()
	changed.SetResourceVersion(resourceVersion)
	return changed
}

func TestRun_SuccessEndsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls []time.Time
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			calls = append(calls, time.Now())
			switch len(calls) {
			case 8:
				return time.Hour, nil
			case 10:
				cancel()
			}
			return 0, errors.New("not yet")
		}, &controller.Options{Queue: workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Second, 0)}})
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, calls, 10)
		assert.Greater(t, calls[7].Sub(calls[6]), 30*time.Second)
		assert.LessOrEqual(t, calls[9].Sub(calls[8]), time.Second, "after a success the backoff begins anew")
	})
}

func TestRun_ReportsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var result controller.ReconcileResult
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			time.Sleep(time.Minute)
			return time.Hour, nil
		}, &controller.Options{OnReconcile: func(r controller.ReconcileResult) { result = r; cancel() }})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, controller.ReconcileResult{Key: types.NamespacedName{Namespace: "shop", Name: "web"}, Duration: time.Minute, After: time.Hour}, result)
	})
}

func TestRun_EndDropsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		added := 0
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			time.AfterFunc(time.Minute, cancel)
			return 0, errors.New("not yet")
		}, &controller.Options{Queue: workqueue.Options{
			RateLimiter: workqueue.FastSlow(time.Hour, time.Hour, 0),
			Metrics:     workqueue.Metrics{OnAdd: func() { added++ }},
		}})
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, added, "the metrics of a controller that has ended are not called")
	})
}

func TestRun_ChangesGoBeforeInitialObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, c := newScript(t)
		var order, want []string
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for _, name := range []string{"a", "b", "c"} {
				source.emit(watch.Added, version(controllertest.Pod(name), "1"))
			}
			source.sync()
			time.Sleep(time.Second)
			synctest.Wait() // one of them is under way
			changed := "a"
			if order[0] == changed {
				changed = "b"
			}
			want = []string{order[0], changed, "new"}
			source.emit(watch.Modified, version(controllertest.Pod(changed), "2"))
			source.emit(watch.Added, version(controllertest.Pod("new"), "3"))
		}()
		err := controller.Run(ctx, c, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			if order = append(order, key.Name); len(order) == 4 {
				cancel()
			}
			time.Sleep(time.Minute)
			return 0, nil
		}, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, order, 4)
		assert.Equal(t, want, order[:3])
	})
}

func TestWatches_ReconcilesOldAndNewKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, c := newScript(t)
		belongs := func(to, version string) *unstructured.Object {
			obj := controllertest.Pod("child")
			obj.SetLabels(map[string]string{"to": to})
			obj.SetResourceVersion(version)
			return obj
		}
		reconciled := reconciledKeys(t, controller.Watches(c, func(obj *unstructured.Object) []types.NamespacedName {
			return []types.NamespacedName{{Name: obj.GetLabels()["to"]}}
		}))
		source.emit(watch.Added, belongs("a", "1"))
		source.sync()
		assert.Equal(t, []string{"a"}, reconciled())
		source.emit(watch.Modified, belongs("b", "2"))
		assert.ElementsMatch(t, []string{"a", "b"}, reconciled(), "a has lost it")
		source.emit(watch.Deleted, belongs("b", "3"))
		assert.Equal(t, []string{"b"}, reconciled())
	})
}

// reconciledKeys runs a controller of nothing with a trigger and returns what reads the names that were reconciled since
// the last call.
func reconciledKeys(t *testing.T, trigger controller.Trigger) func() []string {
	t.Helper()
	var names []string
	go func() {
		_ = controller.Run(t.Context(), running(t, staticSource{}), func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			names = append(names, objectkey.Text(key))
			return 0, nil
		}, &controller.Options{Triggers: []controller.Trigger{trigger}})
	}()
	return func() []string {
		synctest.Wait()
		read := names
		names = nil
		return read
	}
}

func TestOwns_ReconcilesControllersOfTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		source, c := newScript(t)
		reconciled := reconciledKeys(t, controller.Owns(c, controllertest.Leases(t, client)))
		owner := func(apiVersion, kind string, controls *bool) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "1", Controller: controls}
		}
		source.sync()
		for name, tc := range map[string]struct {
			owners []metav1.OwnerReference
			want   []string
		}{
			"controller":                    {[]metav1.OwnerReference{owner("coordination.k8s.io/v1", "Lease", new(true))}, []string{"shop/owner"}},
			"controller of another version": {[]metav1.OwnerReference{owner("coordination.k8s.io/v2", "Lease", new(true))}, []string{"shop/owner"}},
			"owner, not controller":         {[]metav1.OwnerReference{owner("coordination.k8s.io/v1", "Lease", new(false))}, nil},
			"owner that does not say":       {[]metav1.OwnerReference{owner("coordination.k8s.io/v1", "Lease", nil)}, nil},
			"controller of another kind":    {[]metav1.OwnerReference{owner("coordination.k8s.io/v1", "LeaseCandidate", new(true))}, nil},
			"controller of another group":   {[]metav1.OwnerReference{owner("example.com/v1", "Lease", new(true))}, nil},
			"controller behind an owner": {[]metav1.OwnerReference{owner("v1", "Node", new(false)), owner("coordination.k8s.io/v1", "Lease", new(true))},
				[]string{"shop/owner"}},
			"none": {nil, nil},
		} {
			child := controllertest.Pod(name)
			child.SetOwnerReferences(tc.owners)
			source.emit(watch.Added, child)
			assert.Equal(t, tc.want, reconciled(), name)
		}
	})
}

func TestRun_ChangesGoBeforeResyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := make(script)
		c := cache.New(source, &cache.Options[unstructured.Object]{ResyncPeriod: time.Hour})
		go func() { _ = c.Run(t.Context()) }()
		go func() {
			source.emit(watch.Added, version(controllertest.Pod("a"), "1"), version(controllertest.Pod("b"), "1"), version(controllertest.Pod("c"), "1"))
			source.sync()
			time.Sleep(time.Hour + time.Second) // the first object of the resync is under way
			source.emit(watch.Added, version(controllertest.Pod("new"), "3"))
		}()
		var order []string
		ctx, cancel := context.WithCancel(t.Context())
		err := controller.Run(ctx, c, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			if order = append(order, key.Name); len(order) == 7 {
				cancel()
			}
			time.Sleep(time.Minute)
			return 0, nil
		}, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, order, 7)
		assert.ElementsMatch(t, []string{"a", "b", "c"}, order[:3])
		assert.Equal(t, "new", order[4], "before the rest of the resync")
		assert.ElementsMatch(t, []string{"a", "b", "c"}, []string{order[3], order[5], order[6]})
	})
}
