package fleet_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// exampleClusters returns a source of two clusters with a pod each. Programs have sources such as fleet.Folder or fleet.ClusterAPI.
func exampleClusters() (source fleet.Source, closeAll func()) {
	east := httptest.NewServer(newPodCluster("east", "web"))
	west := httptest.NewServer(newPodCluster("west", "db"))
	source = func(_ context.Context, clusters *fleet.Clusters) error {
		clusters.Set("east", &transport.Config{Server: east.URL})
		clusters.Set("west", &transport.Config{Server: west.URL})
		return nil // the clusters do not change any more
	}
	return source, func() { east.Close(); west.Close() }
}

func ExampleCache() {
	source, closeAll := exampleClusters()
	defer closeAll()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	clusters := fleet.New(&fleet.Options{Sources: []fleet.Source{source}})
	go func() { _ = clusters.Run(ctx) }()
	pods := fleet.NewCache(clusters, "pods", &fleet.CacheOptions[unstructured.Lazy]{
		Options: cache.Options[unstructured.Lazy]{Pack: packed.New[unstructured.Lazy]()}, // with the same dictionaries for all clusters
	})
	go func() { _ = pods.Run(ctx) }()
	if err := pods.WaitForSync(ctx); err != nil { // a *cache.RejectedError if some clusters are failing
		log.Fatal(err)
	}
	var found []string
	for cluster, pod := range pods.List("shop", nil) {
		found = append(found, cluster+": "+pod.GetName())
	}
	slices.Sort(found)
	fmt.Println(found)
	for _, status := range pods.Clusters() {
		fmt.Println(status.Cluster, status.State)
	}
	// Output:
	// [east: web west: db]
	// east synced
	// west synced
}

func ExampleRun() {
	source, closeAll := exampleClusters()
	defer closeAll()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	clusters := fleet.New(&fleet.Options{
		Sources: []fleet.Source{source},
		Select:  func(cluster string) bool { return fleet.Replica(cluster, 1) == 0 }, // the clusters of replica 0 of 1
	})
	go func() { _ = clusters.Run(ctx) }()
	pods := fleet.NewCache[unstructured.Object](clusters, "pods", nil)
	go func() { _ = pods.Run(ctx) }()
	reconciled := make(chan string, 2)
	go func() {
		_ = fleet.Run(ctx, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			client, err := clusters.Client(key.Cluster) // for writes
			if err != nil {
				return 0, err
			}
			defer func() { reconciled <- key.String() }()
			pod, found := pods.Get(key)
			if !found || pod.GetDeletionTimestamp() != nil {
				return 0, nil
			}
			_ = client
			return 0, nil
		}, nil)
	}()
	keys := []string{<-reconciled, <-reconciled}
	slices.Sort(keys)
	fmt.Println(keys)
	// Output: [east/shop/web west/shop/db]
}

func ExampleReplica() {
	for _, cluster := range []string{"tenant-0", "tenant-1", "tenant-2", "tenant-3"} {
		fmt.Println(cluster, fleet.Replica(cluster, 2))
	}
	// Output:
	// tenant-0 0
	// tenant-1 0
	// tenant-2 0
	// tenant-3 1
}
