package dynamic_test

import (
	"context"
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

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
