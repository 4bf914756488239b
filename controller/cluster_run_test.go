package controller_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// following gives a cache that runs until the test ends.
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

// begun runs a controller; what it returns stops it and waits for its error.
func begun(t *testing.T, c *cache.Cache[unstructured.Object], reconcile controller.Reconcile, opts *controller.Options) (stop func() error) {
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

// take waits for the next of what a test waits for.
func take[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func TestEveryObjectIsReconciledAndAgainWhenItOrWhatItOwnsChanges(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps, secrets := resource(t, client, "cm").In(namespace), resource(t, client, "secrets").In(namespace)
	owner, err := configMaps.Create(t.Context(), object("ConfigMap", "owner"), nil)
	require.NoError(t, err)
	keys := make(chan cache.Key, 100)
	c, owned := following(t, configMaps), following(t, secrets)
	stop := begun(t, c, func(_ context.Context, key cache.Key) (time.Duration, error) {
		if key.Name != "kube-root-ca.crt" { // comes when the controller manager comes to it
			keys <- key
		}
		return 0, nil
	}, &controller.Options{Triggers: []controller.Trigger{controller.Owned(owned, configMaps)}})
	want := cache.Key{Namespace: namespace, Name: "owner"}
	assert.Equal(t, want, take(t, keys))

	_, err = configMaps.Patch(t.Context(), "owner", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, want, take(t, keys))

	child := object("Secret", "child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.GetUID(), Controller: new(true)}})
	_, err = secrets.Create(t.Context(), child, nil)
	require.NoError(t, err)
	assert.Equal(t, want, take(t, keys))
	_, err = secrets.Delete(t.Context(), "child", nil)
	require.NoError(t, err)
	assert.Equal(t, want, take(t, keys))
	require.ErrorIs(t, stop(), context.Canceled)
}

func TestAFailedReconcileIsTriedAgainAndAPanicIsAFailure(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").In(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "hard"), nil)
	require.NoError(t, err)
	var calls atomic.Int32
	outcomes := make(chan controller.Reconciled, 100)
	begun(t, following(t, configMaps), func(_ context.Context, key cache.Key) (time.Duration, error) {
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
	}, &controller.Options{Workers: 2, Reconciled: func(r controller.Reconciled) {
		if r.Key.Name == "hard" {
			outcomes <- r
		}
	}})
	assert.EqualError(t, take(t, outcomes).Err, "not yet")
	var panicked *controller.PanicError
	require.ErrorAs(t, take(t, outcomes).Err, &panicked)
	assert.Equal(t, "out of order", panicked.Value)
	assert.Contains(t, string(panicked.Stack), "cluster_run_test.go")
	assert.NoError(t, take(t, outcomes).Err)
	assert.NoError(t, take(t, outcomes).Err)
}

func TestStoppingWaitsForTheWorkInHandAsLongAsGraceLasts(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").In(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "slow"), nil)
	require.NoError(t, err)
	c := following(t, configMaps)

	for name, grace := range map[string]time.Duration{"in time": 0, "too late": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inHand, finish := make(chan struct{}), make(chan struct{})
			var cut atomic.Bool
			var once sync.Once
			stop := begun(t, c, func(ctx context.Context, _ cache.Key) (time.Duration, error) {
				once.Do(func() { close(inHand) })
				select {
				case <-finish:
				case <-ctx.Done():
					cut.Store(true)
				}
				return 0, nil
			}, &controller.Options{Grace: grace})
			take(t, inHand)
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
			require.ErrorIs(t, take(t, stopped), context.Canceled)
			assert.Equal(t, grace != 0, cut.Load())
		})
	}
}

func TestRunReturnsWhyACacheCannotBeRead(t *testing.T) {
	secrets := resource(t, connectAs(t, "limited"), "secrets").In("default")
	err := controller.Run(t.Context(), following(t, secrets), nil, nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestAnOperatorIsToldWhatHappensToEachObject(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").In(namespace)
	created, err := configMaps.Create(t.Context(), object("ConfigMap", "watched"), nil)
	require.NoError(t, err)
	type told struct {
		kind  watch.EventType
		value string
	}
	events := make(chan told, 100)
	var failed atomic.Bool
	operator := controller.NewOperator(client, nil)
	operator.Watch("", "v1", "configmaps", func(ctx context.Context, event controller.ResourceEvent) error {
		if event.Object.GetName() != "watched" {
			return nil
		}
		if event.Type == watch.Modified && failed.CompareAndSwap(false, true) {
			return errors.New("once more, please")
		}
		value, _, err := unstructured.Get[string](event.Object, "data", "a")
		if event.Type != watch.Deleted {
			_, err = event.Resource.Get(ctx, "watched", nil)
		}
		events <- told{event.Type, value}
		return err
	}, namespace)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	t.Cleanup(cancel)

	assert.Equal(t, told{watch.Added, ""}, take(t, events))
	_, err = configMaps.Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, told{watch.Modified, "1"}, take(t, events))
	_, err = configMaps.Delete(t.Context(), "watched", nil)
	require.NoError(t, err)
	assert.Equal(t, told{watch.Deleted, "1"}, take(t, events))
	again, err := configMaps.Create(t.Context(), object("ConfigMap", "watched"), nil)
	require.NoError(t, err)
	require.NotEqual(t, created.GetUID(), again.GetUID())
	assert.Equal(t, told{watch.Added, ""}, take(t, events))
	require.ErrorContains(t, operator.Run(t.Context()), "it runs already")
	cancel()
	require.ErrorIs(t, take(t, ended), context.Canceled)
}

func TestAnOperatorTellsTheLastStateOfWhatWasDeletedWhileItsHandlerWasBusy(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").In(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "watched"), nil)
	require.NoError(t, err)
	inHand, finish := make(chan struct{}), make(chan struct{})
	last := make(chan string, 1)
	operator := controller.NewOperator(client, &controller.Options{Workers: 2})
	operator.Watch("", "v1", "configmaps", func(_ context.Context, event controller.ResourceEvent) error {
		switch {
		case event.Object.GetName() == "sign":
			close(finish) // the deletion came before this, and has been heard, too
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
	}, namespace)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	take(t, inHand)
	_, err = configMaps.Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
	require.NoError(t, err)
	_, err = configMaps.Delete(t.Context(), "watched", nil)
	require.NoError(t, err)
	_, err = configMaps.Create(t.Context(), object("ConfigMap", "sign"), nil)
	require.NoError(t, err)
	assert.Equal(t, "1", take(t, last))
	cancel()
	require.ErrorIs(t, take(t, ended), context.Canceled)
}

func TestAnOperatorIsNotRunAgainWhileAHandlerIsBusy(t *testing.T) {
	client, namespace := newNamespace(t)
	_, err := resource(t, client, "cm").In(namespace).Create(t.Context(), object("ConfigMap", "slow"), nil)
	require.NoError(t, err)
	inHand, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	operator := controller.NewOperator(client, nil)
	operator.Watch("", "v1", "configmaps", func(ctx context.Context, _ controller.ResourceEvent) error {
		once.Do(func() { close(inHand) })
		<-finish
		return nil
	}, namespace)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	take(t, inHand)
	cancel()
	over, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	require.ErrorContains(t, operator.Run(over), "it runs already")
	close(finish)
	require.ErrorIs(t, take(t, ended), context.Canceled)
	require.ErrorIs(t, operator.Run(over), context.DeadlineExceeded, "now it may")
}

func TestAnOperatorEndsWithTheErrorOfAWatchThatCannotBegin(t *testing.T) {
	client, namespace := newNamespace(t)
	ignore := func(context.Context, controller.ResourceEvent) error { return nil }
	operator := controller.NewOperator(client, nil)
	operator.Watch("example.com", "v1", "nothings", ignore, namespace)
	require.ErrorContains(t, operator.Run(t.Context()), `watch nothings.example.com: the server serves no resource or kind "nothings.v1.example.com"`)

	operator = controller.NewOperator(connectAs(t, "limited"), nil)
	operator.Watch("", "v1", "secrets", ignore, "default")
	err := operator.Run(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// It needs the controller manager, which takes a while to come back after restarts of the server in later tests.
func TestTheGarbageCollectorFollowsTheReference(t *testing.T) {
	client, namespace := newNamespace(t)
	cluster.NeedComponents(t, cluster.ControllerManager)
	of, owner := createConfigMap(t, client, namespace, map[string]any{"name": "owner"})
	owned := named("v1", "ConfigMap", namespace, "owned", "")
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
	}, patience, patience/600)
}
