package fleet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// podKey returns the key of a pod of a cluster.
func podKey(cluster, name string) fleet.Key {
	return fleet.Key{Cluster: cluster, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

// TestRun_RemovedClusterLosesParkedKeys has a key of a cluster that leaves the fleet before it has synced.
func TestRun_RemovedClusterLosesParkedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := newPodCluster("hanging")
		hanging.Handle("WATCH /api/v1/pods", scripted.Hang)
		hanging.Handle("GET /api/v1/pods", scripted.Hang)
		east := newPodCluster("east", "web")
		west := newPodCluster("west", "web")
		source, members := dynamicSource()
		f := newFleet(t, source, hanging, east, west)
		members().Set("east", hanging.config("first"))
		members().Set("west", west.config("first"))
		pods := newPods(t, f)
		var r reconciles
		startRun(t, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			return 0, nil
		}, &fleet.RunOptions{Triggers: []fleet.Trigger{fleet.Watches(pods, func(cluster string, _ *unstructured.Object) []fleet.Key {
			if cluster == "west" {
				return []fleet.Key{podKey("east", "parked")}
			}
			return nil
		})}})
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"west/shop/web"}, r.drain())
		members().Remove("east")
		time.Sleep(5 * time.Second)
		members().Set("east", east.config("first"))
		time.Sleep(5 * time.Second)
		assert.Equal(t, []string{"east/shop/web"}, r.drain())
	})
}

// TestRun_RemovedClusterForgetsLeftObjects has a pod that leaves the shard, and is deleted while its cluster is not in the fleet.
func TestRun_RemovedClusterForgetsLeftObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "api", "db")
		empty := newPodCluster("east", "db")
		empty.name = "empty"
		source, members := dynamicSource()
		f := newFleet(t, source, east, empty)
		half := shard.Split(shard.UID, 2)[0]
		require.True(t, half.Matches("shop", "east-db") && !half.Matches("shop", "east-api"))
		pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{Shard: shard.New(shard.UID, shard.All()...)}})
		run(t, pods.Run)
		members().Set("east", east.config("first"))
		var r reconciles
		startRun(t, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			return 0, nil
		}, &fleet.RunOptions{Triggers: []fleet.Trigger{fleet.Watches(pods, func(cluster string, obj *unstructured.Object) []fleet.Key {
			if obj.GetName() == "db" {
				return []fleet.Key{podKey(cluster, "api")}
			}
			return nil
		})}})
		both := []string{"east/shop/api", "east/shop/db"}
		time.Sleep(5 * time.Second)
		require.Equal(t, both, slices.Compact(r.drain()))
		require.NoError(t, pods.SetShard(half))
		time.Sleep(5 * time.Second)
		require.Empty(t, r.drain())
		members().Remove("east")
		time.Sleep(5 * time.Second)
		require.Empty(t, r.drain())
		members().Set("east", empty.config("first"))
		time.Sleep(5 * time.Second)
		assert.Equal(t, both, slices.Compact(r.drain()), "the change of db reconciles the deleted pod api")
	})
}
