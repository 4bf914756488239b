// Package inventory reads the objects of all kinds of a server, custom resources included:
//
//	for item, err := range inventory.List[unstructured.Lazy](ctx, client, nil) {
//		if err != nil {
//			return err // also if the objects of a kind could not be listed: the last element
//		}
//		fmt.Println(item.Resource.APIResource().GVR, item.Object.GetNamespace(), item.Object.GetName())
//	}
//
// A user without cluster-wide permissions receives the objects of the permitted namespaces.
//
// A [Cache] keeps the objects current and searches them without requests:
//
//	c := inventory.NewCache(client, nil)
//	go c.Run(ctx)
//	if err := c.WaitForSync(ctx); err != nil {
//		return err // an *IncompleteError if the objects of some kinds could not be listed
//	}
//	failed, err := c.Query(ctx, &inventory.Query{Readiness: readiness.Failed, Limit: 100})
//	…
//	visible, err := c.For(user).Query(ctx, nil) // the objects that a user may list
package inventory
