package dynamic_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func ExampleConnect() {
	ctx := context.Background()
	server := httptest.NewServer(scripted.New(resources)) // in place of a cluster
	defer server.Close()

	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL}) // nil means the result of transport.Load
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"po", "Pod", "pods.v1", "pod.apps", "podz"} {
		pods, err := client.Resource(ctx, name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(pods.Namespace("shop").Path("web"))
	}
	// Output:
	// /api/v1/namespaces/shop/pods/web <nil>
	// /api/v1/namespaces/shop/pods/web <nil>
	// the server serves no resource or kind "pods.v1": did you mean pods?
	// the server serves no resource or kind "pod.apps": did you mean pods?
	// the server serves no resource or kind "podz": did you mean pods?
}

// A client over a connection that the program has. Its discovery documents are read when they are needed.
func ExampleNew() {
	ctx := context.Background()
	api := scripted.New(resources)
	server := httptest.NewServer(api)
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}

	client := dynamic.New(conn, nil)
	defer client.Close()
	fmt.Println("discovery requests:", api.Discoveries())
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("discovery requests:", api.Discoveries(), "for", pods)
	// Output:
	// discovery requests: 0
	// discovery requests: 1 for pods
}

func ExampleClient_ForPath() {
	ctx := context.Background()
	client, closeAll := shopClient()
	defer closeAll()

	pods, name, err := client.ForPath(ctx, "/api/v1/namespaces/shop/pods/web") // from an audit log, for example
	if err != nil {
		log.Fatal(err)
	}
	web, err := pods.Get(ctx, name, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.GetKind(), web.GetName())
	fmt.Println(pods.Path(name)) // the inverse
	// Output:
	// Pod web
	// /api/v1/namespaces/shop/pods/web <nil>
}

// A page is a single request. The list's own metadata has the resourceVersion and the token of the next page.
func ExampleHandle_ListPage() {
	ctx := context.Background()
	api := scripted.New(resources)
	api.Handle("GET /api/v1/pods",
		scripted.JSON(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"next","remainingItemCount":1},"items":[{"metadata":{"name":"db"}}]}`),
		scripted.JSON(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"web"}}]}`))
	client, closeAll := connectTo(api)
	defer closeAll()

	pods := found(client, "pods").AllNamespaces()
	opts := &metav1.ListOptions{Limit: 1}
	for {
		page, err := pods.ListPage(ctx, opts)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(page.Kind, page.ResourceVersion, page.Items[0].GetName())
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	// Output:
	// PodList 9 db
	// PodList 9 web
}

func ExampleClient_ForKind() {
	client, closeAll := shopClient() // a program calls dynamic.Connect(ctx, nil)
	defer closeAll()

	pods, err := client.ForKind(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pods.APIResource().GVR.Resource, pods.APIResource().Namespaced)
	_, err = client.ForKind(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Pods"})
	fmt.Println(err)
	// Output:
	// pods true
	// the server serves no resource or kind "Pods.v1": did you mean pods?
}

func ExampleClient_ForObject() {
	client, closeAll := shopClient()
	defer closeAll()

	pod, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}`))
	if err != nil {
		log.Fatal(err)
	}
	pods, err := client.ForObject(context.Background(), pod)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pods.Path(pod.GetName()))
	// Output:
	// /api/v1/namespaces/shop/pods/web <nil>
}

func ExampleHandle_Follow() {
	server := scripted.New(resources)
	server.Handle("WATCH /api/v1/namespaces/shop/pods", scripted.Watch(
		scripted.Event("ADDED", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web","uid":"u1","resourceVersion":"3"}}`),
		scripted.InitialEventsEnd("v1", "Pod", "5"),
		scripted.Event("DELETED", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web","uid":"u1","resourceVersion":"6"}}`)))
	client, closeAll := connectTo(server)
	defer closeAll()

	pods := found(client, "pods").Namespace("shop")
	for change, err := range pods.Follow(context.Background(), &dynamic.FollowOptions{OnInterruption: func(interruption dynamic.Interruption) {
		log.Print(interruption) // Follow continues by itself
	}}) {
		switch {
		case err != nil:
			log.Fatal(err) // of ctx, or a lack of rights
		case change.Type == dynamic.Synced:
			fmt.Println("all present objects were added")
		case change.Object != nil:
			fmt.Println(change.Type, change.Object.GetName())
		}
		if change.Type == watch.Deleted {
			break // ends the watch
		}
	}
	// Output:
	// ADDED web
	// all present objects were added
	// DELETED web
}

func ExampleClient_Discovery() {
	client, closeAll := shopClient()
	defer closeAll()

	snapshot, err := client.Discovery().Snapshot(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for resource := range snapshot.PreferredResources(nil) {
		if resource.GVK.Kind == "Pod" {
			fmt.Println(resource.GVR.Resource, resource.ShortNames, resource.Supports("watch"))
		}
	}
	// Output:
	// pods [po] true
}
