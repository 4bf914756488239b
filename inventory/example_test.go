package inventory_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/transport"
)

// runCache runs a cache of a server with a Deployment and its pods. A program calls transport.Load and dynamic.Connect.
func runCache() (c *inventory.Cache, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(shop())
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

func ExampleView_Query() {
	c, stop := runCache()
	defer stop()

	q := &inventory.Query{LabelSelector: "app=web", Limit: 3}
	for {
		page, err := c.Query(context.Background(), q)
		if err != nil {
			log.Fatal(err)
		}
		for _, item := range page.Items {
			fmt.Println(item.Object)
		}
		if q.Continue = page.Continue; q.Continue == "" {
			break
		}
		fmt.Println("next page")
	}
	// Output:
	// ConfigMap a/colors
	// Pod a/web-1
	// Pod a/web-2
	// next page
	// Deployment a/web
	// run a cache of all kinds: context canceled
}

func ExampleView_Edges() {
	c, stop := runCache()
	defer stop()

	page, err := c.Query(context.Background(), &inventory.Query{Name: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	edges, err := c.Edges(context.Background(), page.Items[0].Object, inventory.Relations())
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
