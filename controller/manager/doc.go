// Package manager runs the functions of a controller program in order: servers, caches, and controllers in one leader among several
// processes. It stops them in reverse.
//
//	m := manager.New(&manager.Options{Leases: leases.Namespace("shop"), LeaseName: "shop-operator"})
//	m.AddServer("probes", manager.HTTPServer(&http.Server{Addr: ":8081", Handler: m.Probes()}, nil))
//	m.AddCache("pods", pods)
//	m.AddController("shops", func(ctx context.Context) error { return controller.Run(ctx, pods, reconcile, nil) })
//	return m.Run(ctx)
//
// A program with a single controller and no probes needs no manager: [controller.Run] and [leaderelection.Run] are enough.
package manager
