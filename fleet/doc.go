// Package fleet is a cache and a controller of many clusters:
//
//	clusters := fleet.New(&fleet.Options{Sources: []fleet.Source{fleet.Folder("/etc/clusters")}})
//	defer clusters.Close()
//	go clusters.Run(ctx)
//	pods := fleet.NewCache(clusters, "pods", &fleet.CacheOptions[unstructured.Lazy]{
//		Options: cache.Options[unstructured.Lazy]{Pack: packed.New[unstructured.Lazy]()},
//	})
//	go pods.Run(ctx)
//	for cluster, pod := range pods.List("shop", nil) { // no request
//		fmt.Println(cluster, pod.GetName())
//	}
//	err := fleet.Run(ctx, pods, func(ctx context.Context, key fleet.Key) (time.Duration, error) {
//		client, err := clusters.Client(key.Cluster)
//		…
//	}, nil)
//
// Clusters come from sources: the contexts of a kubeconfig ([Contexts]), a folder of kubeconfigs ([Folder]), Secrets of Cluster API
// ([ClusterAPI]) or further Secrets ([Secrets]), or any function ([Source]). They are added, changed and removed at run time. Each
// cluster has a connection and a credential of its own. A change of its configuration reconnects this cluster alone.
//
// # States
//
// [Cache.Clusters] has the state of each cluster: connecting, synced, or failing since when and why. Clusters do not delay each other: errors
// are retried with a backoff of at most a minute, and the objects of a failing cluster are kept. Reconnects of many clusters are spread
// over five milliseconds for each cluster of the fleet, a minute at most.
//
// # Costs
//
// A cluster that no cache uses has no connection, no discovery and no goroutine. A cluster in a cache has a watch and a goroutine,
// and a goroutine for each loop over [Cache.Changes]. The discovery of a resource is dropped once the resource is known. docs/SCALE.md
// has measured figures.
//
// # Replicas
//
// Replicas of a program divide the clusters with Options.Select and [Replica], the objects of each cluster with cache.Options.Shard and
// [Cache.SetShard], or both.
package fleet
