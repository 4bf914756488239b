// Package controller runs reconcilers for objects of any kind:
//
//	widgets, err := client.Resource(ctx, "widgets.example.com")
//	if err != nil {
//		return err
//	}
//	objects := cache.New(widgets.AllNamespaces(), nil)
//	go objects.Run(ctx)
//	return controller.Run(ctx, objects, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
//		widget, found := objects.Get(key.Namespace, key.Name)
//		if !found {
//			return 0, nil // deleted
//		}
//		_, err := controller.SetStatus(ctx, widgets, widget, map[string]any{"ready": true})
//		return 0, err
//	}, nil)
//
// [Run] reconciles a key; [Operator] calls a handler with a change. Both have the same queue, retries, leases and waits for own
// writes:
//
//	                  Run                              Operator
//	called with       a key                            Added, Modified or Deleted, with the old and the new object
//	reads             caches of the program            the change alone
//	related objects   trigger reconciles: Owns,        not seen
//	                  Watches
//	after deletion    the key is not in the cache      Deleted for each UID that had an Added
//	kinds             served at the start              also kinds served later: Operator.WatchKind
//	use it to         bring objects in line with a     forward changes, count, notify; clean up after
//	                  desired state                    deletions without finalizers
//
// [RegisterCRDs] makes the server serve a controller's kinds. [Finalize], [SetStatus], [PatchStatus] with [MergeConditions], and
// [SetControllerReference] are building blocks of reconciles. The nested packages workqueue, leaderelection and events also work
// alone.
//
// Background failures are logged: failed reconciles, resources not served, the loss of a Lease. The logger is slog's default or
// the Logger in the options. Objects are logged by kind and key, never by content.
//
// See https://kubernetes.io/docs/concepts/architecture/controller/.
package controller
