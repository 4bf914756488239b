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

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// TestLead_LostLeaseEndsReconciles has a leader cut off from the server while a reconcile of its controller is under way:
// before, or while the controller finishes what it has in hand.
func TestLead_LostLeaseEndsReconciles(t *testing.T) {
	for name, stopped := range map[string]bool{"while it leads": false, "while it finishes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, server := inMemory(t)
				var away atomic.Bool
				cutOff := server.connect(t, func(*http.Request) error {
					if away.Load() {
						return errors.New("no route to host")
					}
					return nil
				})
				healthy := server.connect(t, func(*http.Request) error { return nil })
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				objects, handle := running(t, still{"web"}), leases(t, cutOff)
				var all sync.WaitGroup
				var endedAt, tookOverAt time.Time
				all.Go(func() {
					err := controller.Lead(ctx, handle, "op", as("one"), func(ctx context.Context, _ int64) error {
						return controller.Run(ctx, objects, func(ctx context.Context, _ cache.Key) (time.Duration, error) {
							time.Sleep(time.Minute)
							away.Store(true)
							if stopped {
								stop()
							}
							<-ctx.Done()
							endedAt = time.Now()
							assert.ErrorIs(t, context.Cause(ctx), controller.ErrLeaseLost)
							return 0, ctx.Err()
						}, &controller.Options{Grace: time.Hour})
					})
					assert.ErrorIs(t, err, controller.ErrLeaseLost)
				})
				time.Sleep(time.Second)
				all.Go(func() {
					assert.NoError(t, controller.Lead(t.Context(), leases(t, healthy), "op", as("two"), func(context.Context, int64) error {
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
		err := controller.Run(ctx, running(t, still{"web", "other"}), func(ctx context.Context, _ cache.Key) (time.Duration, error) {
			end(fmt.Errorf("somebody else's election: %w", controller.ErrLeaseLost))
			<-ctx.Done()
			return 0, ctx.Err()
		}, nil)
		require.ErrorIs(t, err, controller.ErrLeaseLost)
		require.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, time.Since(began))
	})
}

// TestLead_RunsControllersOnCluster lets Lead, a cache, Run and an Operator work together on a real server, until another
// takes the Lease.
func TestLead_RunsControllersOnCluster(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "configmaps").In(namespace)
	_, err := configMaps.Create(t.Context(), object("ConfigMap", "web"), nil)
	require.NoError(t, err)
	handle := resource(t, client, "leases.coordination.k8s.io").In(namespace)
	opts := &controller.Options{Grace: time.Hour} // which must not count
	for name, run := range map[string]func(ctx context.Context, reconcile func(context.Context) error) error{
		"run": func(ctx context.Context, reconcile func(context.Context) error) error {
			c := cache.New(configMaps, nil)
			var cached sync.WaitGroup
			defer cached.Wait()
			cached.Go(func() { _ = c.Run(ctx) })
			return controller.Run(ctx, c, func(ctx context.Context, _ cache.Key) (time.Duration, error) { return 0, reconcile(ctx) }, opts)
		},
		"operator": func(ctx context.Context, reconcile func(context.Context) error) error {
			operator := controller.NewOperator(client, opts)
			operator.Watch("", "v1", "configmaps", func(ctx context.Context, _ controller.ResourceEvent) error { return reconcile(ctx) }, namespace)
			return operator.Run(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHand := make(chan struct{})
			var once sync.Once
			ended := make(chan error, 1)
			go func() {
				ended <- controller.Lead(t.Context(), handle, name, &controller.LeadOptions{RetryPeriod: 50 * time.Millisecond}, func(ctx context.Context, _ int64) error {
					return run(ctx, func(ctx context.Context) error {
						once.Do(func() { close(inHand) })
						<-ctx.Done()
						assert.ErrorIs(t, context.Cause(ctx), controller.ErrLeaseLost)
						return ctx.Err()
					})
				})
			}()
			take(t, inHand)
			_, err := handle.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another"}}`), nil)
			require.NoError(t, err)
			require.ErrorIs(t, take(t, ended), controller.ErrLeaseLost)
		})
	}
}
