// Package discovery lists the resources of an API server: groups, versions, and the kind, scope, verbs, names and subresources of
// each resource.
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
// [Snapshot.PreferredResources] yields each resource once, filtered. [Client] keeps the latest response as an immutable
// [Snapshot]: [Client.Refresh] requests a new snapshot, [Client.Run] keeps it current by watching definitions,
// [Client.WaitForSnapshot] waits until a resource is served, and [Client.Changes] yields the differences. [Options] share
// kubectl's cache on disk or start from a saved snapshot. Package restmapper resolves names typed by users.
//
// A snapshot costs two requests, /api and /apis, if the server has aggregated discovery (KEP-3352). Older servers take an
// additional request for each group version, sent in parallel. The API is described at
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api.
package discovery
