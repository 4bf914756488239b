package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/controller/manager"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
)

var _ = []manager.Cache{(*cache.Cache[unstructured.Object])(nil), (*fleet.Cache[unstructured.Object])(nil), (*inventory.Cache)(nil)}

// TestManager_LeaderElection runs two managers: the second leads after the end of the first, and a lost Lease ends it.
func TestManager_LeaderElection(t *testing.T) {
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	leases := client.Resource(t, c, "leases").Namespace(namespace)
	leading := make(chan string)
	runManager := func(identity string) (stop func(), ended chan error) {
		m := manager.New(&manager.Options{Leases: leases, LeaseName: "shop", LeaderElection: &leaderelection.Options{
			Identity: identity, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
		}})
		settings := cache.New(client.Resource(t, c, "configmaps").Namespace(namespace), nil)
		m.AddCache("settings", settings)
		m.AddController("shops", func(ctx context.Context) error {
			assert.True(t, settings.HasSynced())
			leading <- identity
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		return cancel, ended
	}
	stopFirst, firstEnded := runManager("first")
	assert.Equal(t, "first", <-leading)
	stopSecond, secondEnded := runManager("second")
	defer stopSecond()
	stopFirst()
	require.ErrorIs(t, <-firstEnded, context.Canceled)
	assert.Equal(t, "second", <-leading)
	_, _, err := leases.Upsert(t.Context(), "shop", func(obj *unstructured.Object) error {
		return unstructured.Set(obj, "thief", "spec", "holderIdentity")
	}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-secondEnded, leaderelection.ErrLeaseLost)
}
