package controller_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// following returns a cache that runs until the test ends.
func following(t *testing.T, r *dynamic.Resource) *cache.Cache[unstructured.Object] {
	t.Helper()
	c := cache.New(r, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		var found *cache.MutationError
		assert.NotErrorAs(t, c.Run(ctx), &found)
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return c
}

// startRun runs a controller; stop stops it and waits for its error.
func startRun(t *testing.T, c *cache.Cache[unstructured.Object], reconcile controller.ReconcileFunc, opts *controller.Options) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, c, reconcile, opts) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func object(kind, name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(controllertest.Timeout):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// createConfigMap returns a handle on config maps and a new one.
func createConfigMap(t testing.TB, client *dynamic.Client, namespace string, metadata map[string]any) (*dynamic.Resource, *unstructured.Object) {
	t.Helper()
	of := controllertest.Resource(t, client, "configmaps").Namespace(namespace)
	obj, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": metadata}}, nil)
	require.NoError(t, err)
	return of, obj
}

// widgets registers a kind in a group of the namespace's name.
func widgets(t testing.TB, client *dynamic.Client, namespace string) *dynamic.Resource {
	t.Helper()
	registered, err := controller.RegisterCRDs(t.Context(), client, []byte(definition("widgets", namespace+".example.com")), nil)
	require.NoError(t, err)
	controllertest.DeleteAfter(t, controllertest.Resource(t, client, "crd"), "widgets."+namespace+".example.com")
	return registered[0].Namespace(namespace)
}

func TestRun_ReconcilesOnOwnAndOwnedChanges(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
	secrets := controllertest.Resource(t, client, "secrets").Namespace(namespace)
	owner, err := configMaps.Create(t.Context(), object("ConfigMap", "owner"), nil)
	require.NoError(t, err)
	keys := make(chan types.NamespacedName, 100)
	c := following(t, configMaps)
	owned := following(t, secrets)
	stop := startRun(t, c, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		if key.Name != "kube-root-ca.crt" { // comes when the controller manager comes to it
			keys <- key
		}
		return 0, nil
	}, &controller.Options{Triggers: []controller.Trigger{controller.Owns(owned, configMaps)}})
	want := types.NamespacedName{Namespace: namespace, Name: "owner"}
	assert.Equal(t, want, receive(t, keys))

	_, err = configMaps.Patch(t.Context(), "owner", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, want, receive(t, keys))

	child := object("Secret", "child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.GetUID(), Controller: new(true)}})
	_, err = secrets.Create(t.Context(), child, nil)
	require.NoError(t, err)
	assert.Equal(t, want, receive(t, keys))
	_, err = secrets.Delete(t.Context(), "child", nil)
	require.NoError(t, err)
	assert.Equal(t, want, receive(t, keys))
	require.ErrorIs(t, stop(), context.Canceled)
}

func TestRun_RetriesErrorsAndPanics(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "hard"), nil)
	require.NoError(t, err)
	var calls atomic.Int32
	outcomes := make(chan controller.ReconcileResult, 100)
	startRun(t, following(t, configMaps), func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		if key.Name != "hard" {
			return 0, nil
		}
		switch calls.Add(1) {
		case 1:
			return 0, errors.New("not yet")
		case 2:
			panic("out of order")
		case 3:
			return time.Millisecond, nil // once more, later
		default:
			return 0, nil
		}
	}, &controller.Options{Workers: 2, OnReconcile: func(r controller.ReconcileResult) {
		if r.Key.Name == "hard" {
			outcomes <- r
		}
	}})
	assert.EqualError(t, receive(t, outcomes).Err, "not yet")
	var panicked *cache.PanicError
	require.ErrorAs(t, receive(t, outcomes).Err, &panicked)
	assert.Equal(t, "out of order", panicked.Value)
	assert.Contains(t, string(panicked.Stack), "run_cluster_test.go")
	assert.NoError(t, receive(t, outcomes).Err)
	assert.NoError(t, receive(t, outcomes).Err)
}

func TestRun_GraceOfRunningReconciles(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "slow"), nil)
	require.NoError(t, err)
	c := following(t, configMaps)

	for name, grace := range map[string]time.Duration{"in time": 0, "too late": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inHand := make(chan struct{})
			finish := make(chan struct{})
			var cut atomic.Bool
			var once sync.Once
			stop := startRun(t, c, func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) {
				once.Do(func() { close(inHand) })
				select {
				case <-finish:
				case <-ctx.Done():
					cut.Store(true)
				}
				return 0, nil
			}, &controller.Options{Grace: grace})
			receive(t, inHand)
			stopped := make(chan error, 1)
			go func() { stopped <- stop() }()
			if grace == 0 {
				select {
				case err := <-stopped:
					assert.Fail(t, "the work in hand was left", err)
				case <-time.After(20 * time.Millisecond):
				}
				close(finish)
			}
			require.ErrorIs(t, receive(t, stopped), context.Canceled)
			assert.Equal(t, grace != 0, cut.Load())
		})
	}
}

func TestRun_ReturnsErrorOfCache(t *testing.T) {
	secrets := controllertest.Resource(t, controllertest.ConnectAs(t, "limited"), "secrets").Namespace("default")
	err := controller.Run(t.Context(), following(t, secrets), nil, nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestOperator_HandlesChanges(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
	created, err := configMaps.Create(t.Context(), object("ConfigMap", "watched"), nil)
	require.NoError(t, err)
	type handledChange struct {
		kind  watch.EventType
		value string
	}
	events := make(chan handledChange, 100)
	var failed atomic.Bool
	operator := controller.NewOperator(nil)
	operator.Watch(configMaps, func(ctx context.Context, event cache.Change[unstructured.Object]) error {
		if event.Object.GetName() != "watched" {
			return nil
		}
		if event.Type == watch.Modified && failed.CompareAndSwap(false, true) {
			return errors.New("once more, please")
		}
		value, _, err := unstructured.Get[string](event.Object, "data", "a")
		if event.Type != watch.Deleted {
			_, err = configMaps.Get(ctx, "watched", nil)
		}
		events <- handledChange{event.Type, value}
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	t.Cleanup(cancel)

	assert.Equal(t, handledChange{watch.Added, ""}, receive(t, events))
	_, err = configMaps.Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, handledChange{watch.Modified, "1"}, receive(t, events))
	_, err = configMaps.Delete(t.Context(), "watched", nil)
	require.NoError(t, err)
	assert.Equal(t, handledChange{watch.Deleted, "1"}, receive(t, events))
	again, err := configMaps.Create(t.Context(), object("ConfigMap", "watched"), nil)
	require.NoError(t, err)
	require.NotEqual(t, created.GetUID(), again.GetUID())
	assert.Equal(t, handledChange{watch.Added, ""}, receive(t, events))
	require.ErrorContains(t, operator.Run(t.Context()), "it runs already")
	cancel()
	require.ErrorIs(t, receive(t, ended), context.Canceled)
}

func TestOperator_FinalStateWhileHandlerIsBusy(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "watched"), nil)
	require.NoError(t, err)
	inHand := make(chan struct{})
	finish := make(chan struct{})
	last := make(chan string, 1)
	operator := controller.NewOperator(&controller.Options{Workers: 2})
	operator.Watch(configMaps, func(_ context.Context, event cache.Change[unstructured.Object]) error {
		switch {
		case event.Object.GetName() == "sign":
			close(finish) // the deletion came before this, and was received, too
		case event.Object.GetName() != "watched":
		case event.Type == watch.Added:
			close(inHand)
			<-finish
		case event.Type == watch.Deleted:
			value, _, err := unstructured.Get[string](event.Object, "data", "a")
			last <- value
			return err
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	receive(t, inHand)
	_, err = configMaps.Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	_, err = configMaps.Delete(t.Context(), "watched", nil)
	require.NoError(t, err)
	_, err = configMaps.Create(t.Context(), object("ConfigMap", "sign"), nil)
	require.NoError(t, err)
	assert.Equal(t, "1", receive(t, last))
	cancel()
	require.ErrorIs(t, receive(t, ended), context.Canceled)
}

func TestOperator_RunsOnceAtATime(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "cm").Namespace(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "slow"), nil)
	require.NoError(t, err)
	inHand := make(chan struct{})
	finish := make(chan struct{})
	var once sync.Once
	operator := controller.NewOperator(nil)
	operator.Watch(configMaps, func(ctx context.Context, _ cache.Change[unstructured.Object]) error {
		once.Do(func() { close(inHand) })
		<-finish
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	receive(t, inHand)
	cancel()
	over, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	require.ErrorContains(t, operator.Run(over), "it runs already")
	close(finish)
	require.ErrorIs(t, receive(t, ended), context.Canceled)
	require.ErrorIs(t, operator.Run(over), context.DeadlineExceeded, "now it may")
}

func TestOperator_ReturnsErrorOfWatch(t *testing.T) {
	operator := controller.NewOperator(nil)
	secrets := controllertest.Resource(t, controllertest.ConnectAs(t, "limited"), "secrets").Namespace("default")
	operator.Watch(secrets, func(context.Context, cache.Change[unstructured.Object]) error { return nil })
	err := operator.Run(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// It needs the controller manager, which takes a while to come back after restarts of the server in later tests.
func TestSetControllerReference_GarbageCollected(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	cluster.NeedComponents(t, cluster.ControllerManager)
	of, owner := createConfigMap(t, client, namespace, map[string]any{"name": "owner"})
	owned := controllertest.Named("v1", "ConfigMap", namespace, "owned", "")
	require.NoError(t, controller.SetControllerReference(owner, owned))
	_, err := of.Create(t.Context(), owned, nil)
	require.NoError(t, err)
	_, err = of.Delete(t.Context(), "owner", nil)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		page, err := of.ListPage(t.Context(), nil)
		require.NoError(c, err)
		for _, left := range page.Items {
			assert.NotEqual(c, "owned", left.GetName())
		}
	}, controllertest.Timeout, controllertest.Timeout/600)
}

func TestRun_ContinuesWithoutRejectedNamespace(t *testing.T) {
	client, later := controllertest.NewNamespace(t)
	admin := controllertest.Resource(t, client, "configmaps")
	_, err := admin.Namespace(later).Create(t.Context(), object("ConfigMap", "web"), nil)
	require.NoError(t, err)
	configMaps := controllertest.Resource(t, controllertest.ConnectAs(t, "limited"), "configmaps")
	c := cache.New(configMaps, &cache.Options[unstructured.Object]{Namespaces: []string{"default", later}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = c.Run(ctx) })
	reconciled := make(chan types.NamespacedName, 100)
	stop := startRun(t, c, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		reconciled <- key
		return 0, nil
	}, nil)
	waitFor := func(key types.NamespacedName) {
		t.Helper()
		for receive(t, reconciled) != key {
		}
	}
	_, err = admin.Namespace("default").Create(t.Context(), object("ConfigMap", later), nil)
	require.NoError(t, err)
	controllertest.DeleteAfter(t, admin.Namespace("default"), later)
	waitFor(types.NamespacedName{Namespace: "default", Name: later})
	var rejected *cache.RejectedError
	require.ErrorAs(t, c.Health(), &rejected)

	const rbac = "rbac.authorization.k8s.io"
	_, err = controllertest.Resource(t, client, "roles").Namespace(later).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "reader"},
		"rules":    []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"list", "watch"}}},
	}}, nil)
	require.NoError(t, err)
	_, err = controllertest.Resource(t, client, "rolebindings").Namespace(later).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "reader"}, "roleRef": map[string]any{"apiGroup": rbac, "kind": "Role", "name": "reader"},
		"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": "limited"}},
	}}, nil)
	require.NoError(t, err)
	waitFor(types.NamespacedName{Namespace: later, Name: "web"})
	require.ErrorIs(t, stop(), context.Canceled)
}
