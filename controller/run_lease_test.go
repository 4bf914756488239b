package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// TestRun_NoReconcileAfterDeadline has a process whose lease ended during a suspension: its ctx ends later.
func TestRun_NoReconcileAfterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isOver atomic.Bool
		isOver.Store(true)
		ctx, stop := context.WithCancel(fence.WithCheck(t.Context(), func() error {
			if isOver.Load() {
				return leaderelection.ErrLeaseLost
			}
			return nil
		}))
		var reconciles atomic.Int64
		objects := running(t, staticSource{"web"})
		ended := make(chan error, 1)
		go func() {
			ended <- controller.Run(ctx, objects, func(context.Context, types.NamespacedName) (time.Duration, error) {
				reconciles.Add(1)
				return time.Minute, nil
			}, nil)
		}()
		time.Sleep(time.Second)
		assert.Zero(t, reconciles.Load())
		isOver.Store(false) // a renewal had arrived
		time.Sleep(time.Second)
		assert.EqualValues(t, 1, reconciles.Load())
		isOver.Store(true)
		time.Sleep(5 * time.Minute)
		assert.EqualValues(t, 1, reconciles.Load())
		stop()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
}

// TestRun_LostLeaseEndsReconciles has a leader cut off from the server while a reconcile of its controller is under way:
// before, or while the controller finishes what it has in hand.
func TestRun_LostLeaseEndsReconciles(t *testing.T) {
	for name, stopped := range map[string]bool{"while it leads": false, "while it finishes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, server := controllertest.New(t)
				var away atomic.Bool
				cutOff := server.Connect(t, func(*http.Request) error {
					if away.Load() {
						return errors.New("no route to host")
					}
					return nil
				})
				healthy := server.Connect(t, func(*http.Request) error { return nil })
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				objects := running(t, staticSource{"web"})
				handle := controllertest.Leases(t, cutOff)
				var all sync.WaitGroup
				var endedAt, tookOverAt time.Time
				all.Go(func() {
					err := leaderelection.Run(ctx, handle, "op", &leaderelection.Options{Identity: "one"}, func(ctx context.Context, _ int64) error {
						return controller.Run(ctx, objects, func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) {
							time.Sleep(time.Minute)
							away.Store(true)
							if stopped {
								stop()
							}
							<-ctx.Done()
							endedAt = time.Now()
							assert.ErrorIs(t, context.Cause(ctx), leaderelection.ErrLeaseLost)
							return 0, ctx.Err()
						}, &controller.Options{Grace: time.Hour})
					})
					assert.ErrorIs(t, err, leaderelection.ErrLeaseLost)
				})
				time.Sleep(time.Second)
				all.Go(func() {
					assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, healthy), "op", &leaderelection.Options{Identity: "two"}, func(context.Context, int64) error {
						tookOverAt = time.Now()
						return nil
					}))
				})
				all.Wait()
				assert.Less(t, endedAt, tookOverAt, "two leaders reconcile")
			})
		})
	}
}

func TestRun_ErrLeaseLostEndsReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		began := time.Now()
		err := controller.Run(ctx, running(t, staticSource{"web", "other"}), func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) {
			end(fmt.Errorf("somebody else's election: %w", leaderelection.ErrLeaseLost))
			<-ctx.Done()
			return 0, ctx.Err()
		}, nil)
		require.ErrorIs(t, err, leaderelection.ErrLeaseLost)
		require.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, time.Since(began))
	})
}

// TestRun_WithLeaderElectionOnCluster lets Lead, a cache, Run and an Operator work together on a real server, until another
// takes the Lease.
func TestRun_WithLeaderElectionOnCluster(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "configmaps").Namespace(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "web"), nil)
	require.NoError(t, err)
	handle := controllertest.Resource(t, client, "leases.coordination.k8s.io").Namespace(namespace)
	opts := &controller.Options{Grace: time.Hour} // which must not count
	for name, run := range map[string]func(ctx context.Context, reconcile func(context.Context) error) error{
		"run": func(ctx context.Context, reconcile func(context.Context) error) error {
			c := cache.New(configMaps, nil)
			var cached sync.WaitGroup
			defer cached.Wait()
			cached.Go(func() { _ = c.Run(ctx) })
			return controller.Run(ctx, c, func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) { return 0, reconcile(ctx) }, opts)
		},
		"operator": func(ctx context.Context, reconcile func(context.Context) error) error {
			operator := controller.NewOperator(opts)
			operator.Watch(configMaps, func(ctx context.Context, _ cache.Change[unstructured.Object]) error { return reconcile(ctx) })
			return operator.Run(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHand := make(chan struct{})
			var once sync.Once
			ended := make(chan error, 1)
			go func() {
				ended <- leaderelection.Run(t.Context(), handle, name, &leaderelection.Options{RetryPeriod: 50 * time.Millisecond}, func(ctx context.Context, _ int64) error {
					return run(ctx, func(ctx context.Context) error {
						once.Do(func() { close(inHand) })
						<-ctx.Done()
						assert.ErrorIs(t, context.Cause(ctx), leaderelection.ErrLeaseLost)
						return ctx.Err()
					})
				})
			}()
			receive(t, inHand)
			_, err := handle.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another"}}`), nil)
			require.NoError(t, err)
			require.ErrorIs(t, receive(t, ended), leaderelection.ErrLeaseLost)
		})
	}
}
