package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// A program that looks at everything, such as a backup, needs a handle on each resource that can be listed.
func ExampleClient_PreferredResources() {
	client, closeAll := shopClient()
	defer closeAll()

	resources, err := client.PreferredResources(context.Background(), &discovery.ResourceFilter{
		Verbs: []string{"list", "watch"}, Namespaced: new(true),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, resource := range resources {
		path, err := resource.AllNamespaces().Path("")
		fmt.Println(resource, path, err)
	}
	// Output:
	// pods /api/v1/pods <nil>
	// deployments.apps /apis/apps/v1/deployments <nil>
}

// A program that needs custom resources may start before somebody installs their definitions.
func ExampleClient_WaitForResources() {
	client, closeAll := shopClient()
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	resources, err := client.WaitForResources(ctx, "deploy", "pods")
	fmt.Println(resources, err)
	_, err = client.WaitForResources(ctx, "deploy", "certificates.cert-manager.io")
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// [deployments.apps pods] <nil>
	// true
}

func ExampleClient_WaitForKinds() {
	client, closeAll := shopClient()
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resources, err := client.WaitForKinds(ctx,
		schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionKind{Group: "apps", Kind: "Deployment"})
	fmt.Println(resources, err)
	// Output: [pods deployments.apps] <nil>
}
