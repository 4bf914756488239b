package controller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

const objectCount = 40

// objectName returns the name of an object. Names that differ in their last characters alone would be in the same shard.
func objectName(n int) string { return fmt.Sprintf("object-%d-of-many", n) }

// calls records the calls of the members of a group.
type calls struct {
	mu      sync.Mutex
	counts  map[string]int // by member, and by member and type of change
	objects map[string]int
	busy    map[types.NamespacedName]string
}

func (c *calls) count(t *testing.T, of string) int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[of]
}

// countOf returns the number of calls for an object.
func (c *calls) countOf(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[name]
}

// work is a call for an object. No other member may work on it meanwhile.
func (c *calls) work(t *testing.T, of string, key types.NamespacedName) {
	c.mu.Lock()
	assert.Empty(t, c.busy[key], "%s is worked on", key)
	c.busy[key] = of
	c.counts[of]++
	c.objects[key.Name]++
	c.mu.Unlock()
	time.Sleep(time.Second)
	c.mu.Lock()
	delete(c.busy, key)
	c.mu.Unlock()
}

// joinGroup starts a member of a group that runs f within its work.
func joinGroup(t *testing.T, client *dynamic.Client, by shard.Field, f func(ctx context.Context, group *sharding.Group) error) (stop func()) {
	t.Helper()
	group, err := sharding.New(controllertest.Leases(t, client), "op", &sharding.Options{By: by})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- group.Run(ctx, func(ctx context.Context) error { return f(ctx, group) })
	}()
	return func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}

// sharded returns a client of a server with objects.
func sharded(t *testing.T) (*dynamic.Client, *controllertest.Server, *dynamic.Resource, *calls) {
	t.Helper()
	client, server := controllertest.New(t)
	objects := controllertest.Resource(t, client, "leases.coordination.k8s.io").Namespace("work")
	for n := range objectCount {
		obj := &unstructured.Object{Object: map[string]any{}}
		obj.SetName(objectName(n))
		_, err := objects.Create(t.Context(), obj, nil)
		require.NoError(t, err)
	}
	return client, server, objects, &calls{counts: map[string]int{}, objects: map[string]int{}, busy: map[types.NamespacedName]string{}}
}

func TestRun_MembersDivideObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, objects, c := sharded(t)
		member := func(name string) (stop func()) {
			return joinGroup(t, client, shard.UID, func(ctx context.Context, group *sharding.Group) error {
				cached := cache.New(objects, &cache.Options[unstructured.Object]{Shard: shard.New(shard.UID)})
				go func() { _ = cached.Run(ctx) }()
				return controller.Run(ctx, cached, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
					c.work(t, name, key)
					return 0, nil
				}, &controller.Options{Sharding: group, Workers: 10})
			})
		}
		stopOne := member("one")
		time.Sleep(30 * time.Second)
		assert.Equal(t, objectCount, c.count(t, "one"))
		stopTwo := member("two")
		time.Sleep(30 * time.Second)
		shared := c.count(t, "two")
		assert.Greater(t, shared, objectCount/4, "its share")
		assert.Less(t, shared, objectCount)
		assert.Equal(t, objectCount, c.count(t, "one"), "no reconcile of what has left")

		server.Delete("/namespaces/work/leases/object-7-")
		server.Change("/namespaces/work/leases/object-8-", func(o map[string]any) { o["spec"] = map[string]any{} })
		time.Sleep(10 * time.Second)
		assert.Equal(t, objectCount+shared+2, c.count(t, "one")+c.count(t, "two"), "each by its member")
		stopOne()
		time.Sleep(30 * time.Second)
		for n := range objectCount {
			assert.GreaterOrEqual(t, c.countOf(objectName(n)), 2, "object %d", n)
		}
		stopTwo()
	})
}

func TestOperator_MembersDivideObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, objects, c := sharded(t)
		member := func(name string) (stop func()) {
			return joinGroup(t, client, shard.UID, func(ctx context.Context, group *sharding.Group) error {
				operator := controller.NewOperator(&controller.Options{Sharding: group, Workers: 10})
				operator.Watch(objects, func(_ context.Context, change cache.Change[unstructured.Object]) error {
					c.work(t, name+" "+string(change.Type), cache.KeyOf(change.Object))
					return nil
				})
				return operator.Run(ctx)
			})
		}
		added := func() int { return c.count(t, "one "+string(watch.Added)) + c.count(t, "two "+string(watch.Added)) }
		deleted := func() int { return c.count(t, "one "+string(watch.Deleted)) + c.count(t, "two "+string(watch.Deleted)) }
		stopOne := member("one")
		time.Sleep(30 * time.Second)
		assert.Equal(t, objectCount, added())
		stopTwo := member("two")
		time.Sleep(30 * time.Second)
		assert.Greater(t, added(), objectCount)
		assert.Zero(t, deleted(), "an object that leaves the shard exists")
		server.Delete("/namespaces/work/leases/object-7-")
		time.Sleep(10 * time.Second)
		assert.Equal(t, 1, deleted())
		stopOne()
		time.Sleep(30 * time.Second)
		assert.GreaterOrEqual(t, c.count(t, "two "+string(watch.Added)), objectCount-1)
		assert.Equal(t, 1, deleted())
		stopThree := member("one")
		time.Sleep(30 * time.Second)
		stopTwo()
		time.Sleep(30 * time.Second)
		assert.GreaterOrEqual(t, added(), 3*objectCount-5)
		assert.Equal(t, 1, deleted())
		stopThree()
	})
}

func TestRun_RejectsCacheWithoutShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, objects, _ := sharded(t)
		group, err := sharding.New(controllertest.Leases(t, client), "op", &sharding.Options{By: shard.Namespace})
		require.NoError(t, err)
		err = group.Run(t.Context(), func(ctx context.Context) error {
			return controller.Run(ctx, cache.New(objects, nil), nil, &controller.Options{Sharding: group})
		})
		require.ErrorContains(t, err, `Options.Sharding is by "metadata.namespace", but the shard of its cache is by ""`)
	})
}
