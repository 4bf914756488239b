// Package dynamic is an untyped Kubernetes client for all resources of a server, custom resources included:
//
//	client, err := dynamic.Connect(ctx, nil) // the cluster of the kubeconfig, or of this pod
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	deployments, err := client.Resource(ctx, "deploy") // any name that kubectl takes
//	if err != nil {
//		return err
//	}
//	for deployment, err := range deployments.Namespace("shop").List(ctx, nil) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(deployment.GetName())
//	}
//
// # Which call
//
//   - A handle: [Client.Resource] by name, [Client.ForKind], [Client.ForObject], [Client.ForPath]; without a lookup
//     [Client.ForGVR], [Client.ForAPIResource]; then [Handle.Namespace], [Handle.AllNamespaces], [Handle.Named],
//     [Handle.Subresource].
//   - Many handles: [Client.PreferredResources] for all resources, filtered; [Client.WaitForResources] and
//     [Client.WaitForKinds] for resources not served yet.
//   - A changed client of the same server: [Client.WithDefaults], [Client.Impersonate].
//   - Single objects: [Handle.Get], [Handle.Create], [Handle.Update], [Handle.Patch], [Handle.Apply] (server-side),
//     [Handle.Delete]; [Handle.Upsert] reads, changes and writes, and retries conflicts; [RetryOnConflict] does so for
//     any change.
//   - Many objects: [Handle.List] page by page, [Handle.ListPage] for a single page, [Handle.DeleteCollection];
//     [Handle.ForEach] processes all selected objects, several at a time.
//   - Changes: [Handle.Follow] is a reflector and recovers from every interruption; [Handle.Watch] is a single watch, and
//     [Handle.OpenWatch] reports when the server accepts it; [Handle.Wait] waits until a condition holds, such as [Ready] for
//     a rollout. Package cache keeps objects in memory.
//   - Subresources by name: [Handle.Scale], [Handle.Evict], [Handle.CreateToken]. Exec, logs and port-forward are in
//     package stream.
//   - Other forms of objects: [As] for Go types, [Handle.Metadata] for metadata only, [Handle.Tables] for the output of
//     kubectl get.
//
// # Conventions
//
// Options are apimachinery's own, passed by pointer; nil means defaults. Iterators send no request before they are ranged over.
// They yield at most one error, as the last element, and close their connection when the loop is left.
//
// Errors of the server are a *apierrors.StatusError of k8s.io/apimachinery, also within an [*ApplyConflictError],
// [*FieldValidationError] or [*DisruptionBudgetError]. A call that cannot succeed returns an [*InvalidRequestError] without a
// request. Unknown and ambiguous names return errors of package restmapper.
//
// The API's concepts are described at https://kubernetes.io/docs/reference/using-api/api-concepts/.
package dynamic
