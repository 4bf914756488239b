package sharding_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// Each process that runs this function reconciles a share of the widgets.
func ExampleGroup_Run() {
	run := func(ctx context.Context, client *dynamic.Client, widgets *dynamic.Resource) error {
		leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
		if err != nil {
			return err
		}
		group, err := sharding.New(leases.Namespace("shop"), "widgets", &sharding.Options{
			OnChange: func(health sharding.Health) {
				slog.Info("members", "names", health.Members, "share", health.Share())
			},
		})
		if err != nil {
			return err
		}
		return group.Run(ctx, func(ctx context.Context) error {
			objects := cache.New(widgets.AllNamespaces(), &cache.Options[unstructured.Object]{Shard: shard.New(group.Field())})
			go func() { _ = objects.Run(ctx) }()
			return controller.Run(ctx, objects, func(context.Context, types.NamespacedName) (time.Duration, error) {
				return 0, nil // with requests that use this ctx
			}, &controller.Options{Sharding: group})
		})
	}
	_ = run
}

// A group that divides the namespaces, so that each member has the same number.
func ExampleListNamespaces() {
	ctx := context.Background()
	api := scripted.New("cluster /v1 namespaces namespace Namespace")
	api.Handle("GET /api/v1/namespaces", scripted.JSON(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},
		"items":[{"metadata":{"name":"home"}},{"metadata":{"name":"shop"}}]}`))
	server := httptest.NewServer(api) // in place of a cluster
	defer server.Close()
	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	namespaces, err := client.Resource(ctx, "namespaces")
	if err != nil {
		log.Fatal(err)
	}
	opts := &sharding.Options{By: shard.Namespace, Namespaces: sharding.ListNamespaces(namespaces)} // of sharding.New
	fmt.Println(opts.Namespaces(ctx))
	// Output: [home shop] <nil>
}
