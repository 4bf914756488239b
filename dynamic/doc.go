// Package dynamic is an untyped Kubernetes client for any resource that a server serves, custom resources included:
//
//	cfg, err := transport.Load(ctx, nil) // kubeconfig or service account
//	if err != nil {
//		return err
//	}
//	client, err := dynamic.Connect(ctx, cfg)
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
//     [Client.ForGVR], [Client.ForMapping]; then [Resource.Namespace], [Resource.AllNamespaces], [Resource.Named],
//     [Resource.Subresource].
//   - Many handles: [Client.PreferredResources] for all resources, filtered; [Client.WaitForResources] and
//     [Client.WaitForKinds] for what may not be served yet.
//   - Another client of the same server: [Client.WithDefaults], [Client.Impersonate], [Client.WithRESTMapper].
//   - One object: [Resource.Get], [Resource.Create], [Resource.Update], [Resource.Patch], [Resource.Apply] (server-side),
//     [Resource.Delete]; [Resource.Upsert] reads, changes and writes, and retries conflicts; [RetryOnConflict] does so for
//     any change.
//   - Many objects: [Resource.List] page by page, [Resource.ListPage] for one page, [Resource.DeleteCollection];
//     [Resource.ForEach] processes all that are selected, several at a time.
//   - Changes: [Resource.Follow] is a reflector, which recovers from every interruption; [Resource.Watch] is one watch,
//     and [Resource.OpenWatch] one whose acceptance matters; [Resource.Wait] waits until a condition holds, such as
//     [Ready] for a rollout. Package cache keeps objects in memory.
//   - Subresources by name: [Resource.Scale], [Resource.Evict], [Resource.CreateToken]. Exec, logs and port-forward are in
//     package stream.
//   - Other forms of objects: [As] for Go types, [Resource.Metadata] for metadata only, [Resource.Tables] for what kubectl
//     get prints.
//
// # Conventions
//
// Options are apimachinery's own, passed by pointer; nil means defaults. Iterators send no request before they are ranged
// over, yield an error once and last, and close their connection when the loop is left.
//
// An error that a server returns is a *apierrors.StatusError of k8s.io/apimachinery, also within an
// [*ApplyConflictError], [*FieldValidationError] or [*DisruptionBudgetError]. A call that cannot succeed is an
// [*InvalidRequestError], and no request is sent. Unknown and ambiguous names are errors of package restmapper.
//
// The API's concepts are described at https://kubernetes.io/docs/reference/using-api/api-concepts/.
package dynamic
