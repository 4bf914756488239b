package inventory_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// runCache runs a cache of a server. A program calls transport.Load and dynamic.Connect.
func runCache(handler http.Handler) (c *inventory.Cache, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(handler)
	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	c = inventory.NewCache(client, nil)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	return c, func() {
		cancel()
		fmt.Println(<-ended)
		client.Close()
		server.Close()
	}
}

// A cache of the kinds of a group. Without Select it has all kinds that the server serves.
func ExampleNewCache() {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(shop()) // in place of a cluster
	defer server.Close()
	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	c := inventory.NewCache(client, &inventory.ListOptions{
		Select: func(r *discovery.Resource) bool { return r.GVK.Group == "apps" },
	})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	page, err := c.Query(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range page.Entries {
		fmt.Println(entry.APIResource().GVK.Kind, entry.Namespace, entry.Name)
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// Deployment a web
	// ReplicaSet a web-5
	// run a cache of all kinds: context canceled
}

func ExampleView_Query() {
	c, stop := runCache(shop())
	defer stop()

	q := &inventory.Query{LabelSelector: "app=web", Limit: 3}
	for {
		page, err := c.Query(context.Background(), q)
		if err != nil {
			log.Fatal(err)
		}
		for _, entry := range page.Entries {
			fmt.Println(entry.APIResource().GVK.Kind, entry.Namespace, entry.Name, entry.Readiness())
		}
		if q.Continue = page.Continue; q.Continue == "" {
			break
		}
		fmt.Println("next page")
	}
	// Output:
	// ConfigMap a colors Current
	// Pod a web-1 Failed
	// Pod a web-2 InProgress
	// next page
	// Deployment a web InProgress
	// run a cache of all kinds: context canceled
}

func ExampleView_Edges() {
	c, stop := runCache(shop())
	defer stop()

	page, err := c.Query(context.Background(), &inventory.Query{Name: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	edges, err := c.Edges(context.Background(), page.Entries[0].Object(), relation.BuiltIn())
	if err != nil {
		log.Fatal(err)
	}
	for _, edge := range edges {
		fmt.Println(edge.Relation, edge.Kind, edge.Name, edge.Err)
	}
	// Output:
	// owner Owner.apps owner owner.apps "owner" not found
	// refers Node one node "one" not found
	// run a cache of all kinds: context canceled
}

func ExampleView_EdgesTo() {
	c, stop := runCache(graph())
	defer stop()

	page, err := c.Query(context.Background(), &inventory.Query{UID: "s1"}) // a Secret
	if err != nil {
		log.Fatal(err)
	}
	edges, err := c.EdgesTo(context.Background(), page.Entries[0].Object(), relation.BuiltIn())
	if err != nil {
		log.Fatal(err)
	}
	for _, edge := range edges {
		fmt.Println(edge.Kind, edge.Name, edge.Relation, "it by", edge.Field)
	}
	// Output:
	// Pod web mounts it by spec.volumes[*].secret.secretName
	// Pod web refers it by spec.containers[*].env[*].valueFrom.secretKeyRef.name
	// run a cache of all kinds: context canceled
}

func ExampleCache_For() {
	c, stop := runCache(shop())
	defer stop()

	server := scripted.New(shopResources) // of a user who may list pods
	server.Handle("POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		review(`{"resourceRules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]}`))
	server.Handle("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review(`{"allowed":false}`))
	listener := httptest.NewServer(server)
	defer listener.Close()
	user, err := dynamic.Connect(context.Background(), &transport.Config{Server: listener.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer user.Close()

	page, err := c.For(user).Query(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range page.Entries {
		fmt.Println(entry.APIResource().GVR.Resource, entry.Namespace, entry.Name)
	}
	// Output:
	// pods a web-1
	// pods a web-2
	// pods b cycle
	// run a cache of all kinds: context canceled
}

func ExampleList() {
	server := httptest.NewServer(newServer())
	defer server.Close()
	client, err := dynamic.Connect(context.Background(), &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for item, err := range inventory.List[unstructured.Lazy](context.Background(), client, &inventory.ListOptions{Workers: 1}) {
		if err != nil {
			fmt.Println(err) // names the kinds that could not be listed, after the objects of all others
			continue
		}
		fmt.Println(item.Resource.APIResource().GVR.Resource, item.Object.GetNamespace(), item.Object.GetName())
	}
	// Output:
	// configmaps a one
	// configmaps b two
	// events a started
	// namespaces  a
	// namespaces  b
	// endpointslices a web-1
	// carts a full
	// carts a empty
}
