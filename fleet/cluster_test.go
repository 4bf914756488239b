package fleet_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// sandboxFleet returns a fleet of two contexts of the sandbox, as two clusters.
func sandboxFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	f := fleet.New(&fleet.Options{
		Sources: []fleet.Source{fleet.Contexts(cluster.Kubeconfig(t))},
		Select:  func(name string) bool { return name == "admin" || name == "token" },
	})
	t.Cleanup(f.Close)
	run(t, f.Run)
	return f
}

func TestRun_OnCluster(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	configMaps := client.Resource(t, admin, "configmaps").Namespace(namespace)
	f := sandboxFleet(t)
	c := fleet.NewCache(f, "configmaps", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{
		Namespaces: []string{namespace}, LabelSelector: "fleet=test",
	}})
	run(t, c.Run)
	var mu sync.Mutex
	seen := map[string]int{}
	startRun(t, c, func(ctx context.Context, key fleet.Key) (time.Duration, error) {
		obj, found := c.Get(key)
		mu.Lock()
		seen[key.Cluster]++
		mu.Unlock()
		if !found || obj.GetAnnotations()[key.Cluster] != "" {
			return 0, nil
		}
		connected, err := f.Client(key.Cluster)
		if err != nil {
			return 0, err
		}
		handle, err := connected.Resource(ctx, "configmaps")
		if err != nil {
			return 0, err
		}
		objects, _ := c.Cluster(key.Cluster)
		_, _, err = objects.TrackWrites(handle).Namespace(key.Namespace).Upsert(ctx, key.Name, func(obj *unstructured.Object) error {
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key.Cluster] = "reconciled"
			obj.SetAnnotations(annotations)
			return nil
		}, nil)
		return 0, err
	}, &fleet.RunOptions{})
	for _, name := range []string{"a", "b"} {
		_, err := configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]any{"fleet": "test"}},
		}}, nil)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		for _, name := range []string{"a", "b"} {
			obj, err := configMaps.Get(t.Context(), name, nil)
			if err != nil || obj.GetAnnotations()["admin"] == "" || obj.GetAnnotations()["token"] == "" {
				return false
			}
		}
		return true
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, c.WaitForSync(t.Context()))
	require.Len(t, c.Clusters(), 2)
	require.NoError(t, c.Health())
	cluster.RestartAPIServer(t, true)
	require.Eventually(t, func() bool {
		_, err := configMaps.DeleteCollection(t.Context(), nil, &metav1.ListOptions{LabelSelector: "fleet=test"})
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	require.Eventually(t, func() bool { return len(names(c.List("", nil))) == 0 }, time.Minute, 50*time.Millisecond)
	require.NoError(t, c.Health())
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, seen, 2)
}

func TestClusterAPI_OnCluster(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	secrets := client.Resource(t, admin, "secrets").Namespace(namespace)
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig(t))
	require.NoError(t, err)
	f := fleet.New(&fleet.Options{Sources: []fleet.Source{fleet.ClusterAPI(secrets)}})
	t.Cleanup(f.Close)
	run(t, f.Run)
	namespaces := fleet.NewCache[unstructured.Lazy](f, "namespaces", nil)
	run(t, namespaces.Run)
	require.NoError(t, namespaces.WaitForSync(t.Context()))
	_, err = secrets.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"type": "cluster.x-k8s.io/secret", "stringData": map[string]any{"value": string(kubeconfig)},
		"metadata": map[string]any{"name": "blue-kubeconfig", "labels": map[string]any{"cluster.x-k8s.io/cluster-name": "blue"}},
	}}, nil)
	require.NoError(t, err)
	name := namespace + "/blue"
	require.Eventually(t, func() bool { return slices.Contains(f.Names(), name) }, time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		_, found := namespaces.Get(fleet.Key{Cluster: name, NamespacedName: cache.KeyOf(&metav1.ObjectMeta{Name: namespace})})
		return found
	}, time.Minute, 50*time.Millisecond, "%v", namespaces.Clusters())
	_, err = secrets.Delete(t.Context(), "blue-kubeconfig", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(f.Names()) == 0 && len(namespaces.Clusters()) == 0 }, time.Minute, 50*time.Millisecond)
}
