package controllerruntime_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// shop is a server with a ConfigMap.
func shop() *httptest.Server {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"settings","uid":"u1","resourceVersion":"3"},"data":{"color":"red"}}`
	server.Handle("GET /api/v1/namespaces/shop/configmaps/settings", scripted.JSON(settings))
	server.Handle("WATCH /api/v1/configmaps", scripted.Watch(scripted.Event("ADDED", settings), scripted.InitialEventsEnd("v1", "ConfigMap", "5")))
	return httptest.NewServer(server)
}

// A client of controller-runtime over a dynamic.Client. The configuration of a manager is that of package manager.
func ExampleNew() {
	ctx := context.Background()
	server := shop()
	defer server.Close()
	anykind, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer anykind.Close()
	from := controllerruntime.New(ctx, anykind)
	c, err := from.NewClient(from.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var settings corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "settings"}, &settings); err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Data)
	// Output: map[color:red]
}

// The same with the rest.Config of a program.
func ExampleFromConfig() {
	ctx := context.Background()
	server := shop()
	defer server.Close()
	from, err := controllerruntime.FromConfig(ctx, &rest.Config{Host: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	c, err := from.NewClient(from.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var settings corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "settings"}, &settings); err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Data)
	// Output: map[color:red]
}

// A client.NewClientFunc, for programs that only have a rest.Config.
func ExampleNewClient() {
	server := shop()
	defer server.Close()
	c, err := controllerruntime.NewClient(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var settings corev1.ConfigMap
	if err := c.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "settings"}, &settings); err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Data)
	// Output: map[color:red]
}

// A cache without a manager. Its informers are anykind's.
func ExampleConstructors_NewCache() {
	ctx, cancel := context.WithCancel(context.Background())
	server := shop()
	defer server.Close()
	anykind, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer anykind.Close()
	from := controllerruntime.New(ctx, anykind)
	objects, err := from.NewCache(from.Config(), cache.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- objects.Start(ctx) }()
	if !objects.WaitForCacheSync(ctx) {
		log.Fatal(<-ended)
	}

	var settings corev1.ConfigMapList // the first read starts the informer and waits for it
	if err := objects.List(ctx, &settings, client.InNamespace("shop")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(settings.Items), settings.Items[0].Data)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 1 map[color:red]
	// <nil>
}

// The keys of a controller are divided among the processes of a group, which run the same manager without leader election.
func ExampleNewShardedReconciler() {
	ctx := context.Background()
	api := scripted.New("coordination.k8s.io/v1 leases lease Lease\n/v1 configmaps configmap ConfigMap")
	server := httptest.NewServer(api)
	defer server.Close()
	anykind, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer anykind.Close()
	leases, err := anykind.Resource(ctx, "leases")
	if err != nil {
		log.Fatal(err)
	}
	group, err := sharding.New(leases.Namespace("shop"), "painter", nil)
	if err != nil {
		log.Fatal(err)
	}
	paint := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })

	from := controllerruntime.New(ctx, anykind)
	objects, err := from.NewCache(from.Config(), cache.Options{}) // mgr.GetCache() of a manager of manager.Configure
	if err != nil {
		log.Fatal(err)
	}
	painter, err := controllerruntime.NewShardedReconciler(objects, group, &corev1.ConfigMap{}, paint)
	fmt.Println(painter != nil, err)
	// ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).WatchesRawSource(painter).Complete(painter)
	// group.Run(ctx, mgr.Start)

	foreign, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = controllerruntime.NewShardedReconciler(foreign, group, &corev1.ConfigMap{}, paint)
	fmt.Println(err)
	// Output:
	// true <nil>
	// a sharded reconciler needs a cache of Constructors.NewCache, not a *cache.informerCache
}
