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
// [Run] reconciles by key, triggered by changes of the reconciled objects and of related objects ([Owns], [Watches]). [Operator]
// calls a handler with each change instead, also for kinds not served yet ([Operator.WatchKind]). [RegisterCRDs] makes the server
// serve a controller's kinds. [Finalize], [SetStatus], [PatchStatus] with [MergeConditions], and [SetControllerReference] are
// building blocks of reconciles. The nested packages workqueue, leaderelection and events also work alone.
//
// Background failures are logged: failed reconciles, resources not served, the loss of a Lease. The logger is slog's default or
// the Logger in the options. Objects are logged by kind and key, never by content.
//
// See https://kubernetes.io/docs/concepts/architecture/controller/.
package controller
