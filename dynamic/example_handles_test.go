package dynamic_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func ExampleClient_ForGVR() {
	client, closeAll := shopClient()
	defer closeAll()

	pods := client.ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	all, err := pods.Path("")
	fmt.Println(all, err)
	web, err := pods.Namespace("shop").Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.GetName())
	// Output:
	// /api/v1/pods <nil>
	// web
}

func ExampleClient_ForAPIResource() {
	client, closeAll := shopClient()
	defer closeAll()

	mapped := &meta.RESTMapping{ // from a meta.RESTMapper
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Scope: meta.RESTScopeNamespace,
	}
	pods := client.ForAPIResource(&discovery.Resource{
		GVR: mapped.Resource, GVK: mapped.GroupVersionKind, Namespaced: mapped.Scope.Name() == meta.RESTScopeNameNamespace,
	})
	web, err := pods.Namespace("shop").Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.GetName())
	// Output: web
}

func ExampleClient_Conn() {
	client, closeAll := connectTo(scripted.New(resources))
	defer closeAll()

	// The connection serves further clients of the same server, such as schema.New(conn, nil).
	fmt.Println(client.Conn().Namespace())
	// Output: default
}

func ExampleClient_Mapper() {
	client, closeAll := shopClient()
	defer closeAll()

	resources, err := client.Mapper().Resources(context.Background(), "po,deploy")
	if err != nil {
		log.Fatal(err)
	}
	for _, resource := range resources {
		fmt.Println(client.ForAPIResource(resource))
	}
	// Output:
	// pods
	// deployments.apps
}

func ExampleHandle_Named() {
	pods, closeAll := shop()
	defer closeAll()

	for event, err := range pods.Named("web").Watch(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type, event.Object.GetName())
	}
	eviction := &unstructured.Object{Object: map[string]any{"spec": map[string]any{}}}
	_, err := pods.Named("web").Subresource("eviction").Create(context.Background(), eviction, nil)
	fmt.Println(err != nil) // a disruption budget does not allow it
	// Output:
	// ADDED web
	// DELETED web
	// true
}

func ExampleHandle_OpenWatch() {
	pods, closeAll := shop()
	defer closeAll()

	stream, err := pods.OpenWatch(context.Background(), &metav1.ListOptions{LabelSelector: "tier=front"})
	if err != nil {
		log.Fatal(err) // the server's rejection, such as 403
	}
	defer stream.Close()
	for {
		event, err := stream.Next()
		if err == io.EOF { //nolint:errorlint // itself: the server closed the stream
			break
		}
		if err != nil {
			log.Fatal(err) // a *apierrors.StatusError if the server sent an ERROR event
		}
		fmt.Println(event.Type, event.Object.GetName())
	}
	// Output:
	// ADDED web
	// DELETED web
}

func ExampleClient_WithDefaults() {
	client, closeAll := shopClient()
	defer closeAll()

	preview := client.WithDefaults(&dynamic.Defaults{Namespace: "shop", FieldManager: "deployer", FieldValidation: metav1.FieldValidationStrict, DryRun: true})
	pods, err := preview.Resource(context.Background(), "pods")
	if err != nil {
		log.Fatal(err)
	}
	web := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	applied, err := pods.Apply(context.Background(), web, nil) // a dry run by the field manager deployer
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(applied.GetName())
	// Output: web
}

func ExampleClient_Impersonate() {
	client, closeAll := shopClient()
	defer closeAll()

	jane, err := client.Impersonate(transport.Impersonation{User: "jane", Groups: []string{"developers"}})
	if err != nil {
		log.Fatal(err)
	}
	pods, err := jane.Resource(context.Background(), "pods") // without another discovery
	if err != nil {
		log.Fatal(err)
	}
	web, err := pods.Namespace("shop").Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.GetName())

	_, err = client.Impersonate(transport.Impersonation{})
	fmt.Println(err)
	// Output:
	// web
	// impersonate: the user is missing
}
