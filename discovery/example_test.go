package discovery_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

func ExampleClient_Snapshot() {
	server := httptest.NewServer(scripted.New(`
		/v1 pods pod Pod po - get,list
		/v1 pods/log Pod get`))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	snapshot, err := discovery.New(conn, nil).Snapshot(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				_, hasLog := resource.Subresource("log")
				fmt.Println(resource.GVK.Kind, resource.GVR.Resource, resource.ShortNames, resource.Supports("watch"), hasLog)
			}
		}
	}
	// Output: Pod pods [po] false true
}

// A program that follows every kind begins with all resources.
func ExampleClient_Changes() {
	server := httptest.NewServer(scripted.New("/v1 pods pod Pod po - get,list\n"))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx := context.Background()
	client := discovery.New(conn, nil)
	if _, err := client.Refresh(ctx); err != nil { // a program calls client.Run in a goroutine
		log.Fatal(err)
	}
	for change := range client.Changes(ctx, nil) {
		fmt.Println("new:", change.New.GVR.Resource, change.Old == nil)
		break // the changes follow, until ctx ends
	}
	// Output: new: pods true
}

func ExampleSnapshot_PreferredResources() {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	snapshot := &discovery.Snapshot{Groups: []discovery.Group{{Name: "apps", Versions: []discovery.Version{
		{Name: "v1", Resources: []*discovery.Resource{
			{GVR: apps.WithResource("deployments"), Namespaced: true, Verbs: []string{"get", "list", "watch"}},
			{GVR: apps.WithResource("reviews"), Verbs: []string{"create"}},
		}},
		{Name: "v1beta1", Resources: []*discovery.Resource{
			{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"}, Namespaced: true, Verbs: []string{"list"}},
		}},
	}}}} // client.Snapshot(ctx) returns one from a server

	for resource := range snapshot.PreferredResources(nil) {
		fmt.Println("served:", resource.GVR)
	}
	for resource := range snapshot.PreferredResources(&discovery.ResourceFilter{Verbs: []string{"list", "watch"}, Namespaced: new(true)}) {
		fmt.Println("listed and watched:", resource.GVR)
	}
	// Output:
	// served: apps/v1, Resource=deployments
	// served: apps/v1, Resource=reviews
	// listed and watched: apps/v1, Resource=deployments
}

func ExampleClient_WaitForSnapshot() {
	api := scripted.New("")
	empty := scripted.New("").ServeHTTP
	api.Handle("GET /apis", empty, empty, scripted.New("example.com/v1").ServeHTTP)
	server := httptest.NewServer(api)
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	snapshot, err := discovery.New(conn, nil).WaitForSnapshot(ctx, func(snapshot *discovery.Snapshot) bool {
		return slices.ContainsFunc(snapshot.Groups, func(g discovery.Group) bool { return g.Name == "example.com" })
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(snapshot.Groups[0].Name, "after", api.Discoveries(), "requests")
	// Output: example.com after 3 requests
}

func ExampleClient_ServerVersion() {
	api := scripted.New("/v1 pods pod Pod")
	api.Handle("GET /version", scripted.JSON(`{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}`))
	server := httptest.NewServer(api)
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	version, err := discovery.New(conn, nil).ServerVersion(context.Background()) // not cached
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(version.GitVersion)
	// Output: v1.37.2
}
