package leaderelection_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// TestRun_OneLeaderThroughServerRestarts has three candidates compete on a real server that is restarted
// and killed.
func TestRun_OneLeaderThroughServerRestarts(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	handle := controllertest.Resource(t, client, "leases.coordination.k8s.io").Namespace(namespace)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var leads atomic.Bool
	var all sync.WaitGroup
	terms := make(chan int64, 1000)
	for n := range 3 {
		all.Go(func() {
			for term := 0; ctx.Err() == nil; term++ {
				_ = leaderelection.Run(ctx, handle, "op", &leaderelection.Options{
					Identity: fmt.Sprint("candidate-", n, "-", term), LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
				}, func(ctx context.Context, token int64) error {
					assert.True(t, leads.CompareAndSwap(false, true), "two lead at once")
					terms <- token
					select {
					case <-ctx.Done():
					case <-time.After(200 * time.Millisecond):
					}
					leads.Store(false)
					return nil
				})
			}
		})
	}
	last := int64(-1)
	for n := range 9 {
		select {
		case token := <-terms:
			assert.Greater(t, token, last)
			last = token
		case <-time.After(2 * controllertest.Timeout):
			t.Fatal("nobody leads")
		}
		if n%3 == 1 {
			cluster.RestartAPIServer(t, n != 4)
		}
	}
	stop()
	all.Wait()
	lease, err := handle.Get(t.Context(), "op", nil)
	require.NoError(t, err)
	transitions, _, err := unstructured.Get[int64](lease, "spec", "leaseTransitions")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, transitions, last)
}
