// Package discovery reads which resources an API server serves: the groups, their versions, and each resource's kind,
// scope, verbs, names and subresources.
//
//	client := discovery.New(conn, nil)
//	snapshot, err := client.Snapshot(ctx)
//	if err != nil {
//		return err
//	}
//	for resource := range snapshot.Resources() {
//		fmt.Println(resource.GVR, resource.Verbs)
//	}
//
// [Snapshot.PreferredResources] yields each resource once, filtered. [Client] keeps the latest answer as an immutable
// [Snapshot]: [Client.Refresh] requests a new one, [Client.Run] keeps it current by watching definitions, [Client.WaitFor]
// waits until something is served, and [Client.Changes] reports the differences. [Options] share kubectl's cache on disk or
// start from a saved snapshot. Names that users type are resolved by package restmapper.
//
// A server with aggregated discovery (KEP-3352) is sent two requests, /api and /apis; an older one is also sent one for each
// group version, in parallel. The API is described at
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api.
package discovery
