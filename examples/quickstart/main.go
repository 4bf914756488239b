// Command quickstart lists the images of every Deployment in the current namespace.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	ctx := context.Background()
	client, err := dynamic.Connect(ctx, nil) // the cluster of $KUBECONFIG or ~/.kube/config
	if err != nil {
		log.Fatal(err)
	}
	deployments, err := client.Resource(ctx, "deploy") // any name accepted by kubectl, of any kind
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the Deployments of the namespace", client.Conn().Namespace())
	for deployment, err := range deployments.List(ctx, nil) { // page by page, a single object in memory
		if err != nil {
			log.Fatal(err)
		}
		image, _, err := unstructured.Get[string](deployment, "spec", "template", "spec", "containers", "0", "image")
		fmt.Println(deployment.GetName(), image, err)
	}
}
