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
package inventory
