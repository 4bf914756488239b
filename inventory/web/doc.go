// Package web serves the objects of an [inventory.Cache] as HTML pages and as JSON:
//
//	objects := inventory.NewCache(client, nil)
//	go objects.Run(ctx)
//	http.ListenAndServe("127.0.0.1:8080", web.Handler(objects, nil))
//
// With [Options].Tokens a page has only the objects that the user of the request may list.
package web
