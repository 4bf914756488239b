package tree_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/cli/tree"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// All that a deployment owns, and its own owners.
func ExampleFind() {
	ctx := context.Background()
	const web = `"metadata":{"namespace":"shop","name":"web","uid":"u1"}`
	const pod = `"metadata":{"namespace":"shop","name":"web-1","uid":"u2","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u1","controller":true}]}`
	api := scripted.New("apps/v1 deployments deployment Deployment deploy\n/v1 pods pod Pod")
	api.Handle("GET /apis/apps/v1/namespaces/shop/deployments/web", scripted.JSON(`{"apiVersion":"apps/v1","kind":"Deployment",`+web+`}`))
	api.Handle("GET /apis/apps/v1/namespaces/shop/deployments", scripted.JSON(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[{`+web+`}]}`))
	api.Handle("GET /api/v1/namespaces/shop/pods", scripted.JSON(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[{`+pod+`}]}`))
	api.Handle("GET /api/v1/namespaces/shop/pods/web-1", scripted.JSON(`{"apiVersion":"v1","kind":"Pod",`+pod+`,"status":{"phase":"Pending"}}`))
	server := httptest.NewServer(api) // in place of a cluster
	defer server.Close()
	connection := &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"}
	defer connection.Close()

	client, err := connection.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	finder := &resource.Finder{Connection: connection}
	found, err := tree.Find(ctx, client, finder.Objects(ctx, []string{"deploy/web"}, true), nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, root := range found.Roots {
		fmt.Println(root.Object.GetName(), "owns", len(root.Owned), "pod:", root.Owned[0].Object.GetName())
	}
	fmt.Println(found.Unread) // errors of kinds that could not be listed
	// Output:
	// web owns 1 pod: web-1
	// []
}

func ExampleWrite() {
	object := func(kind, name string) *unstructured.Object {
		obj := &unstructured.Object{Object: map[string]any{"kind": kind}}
		obj.SetName(name)
		return obj
	}
	pod := &tree.Node{Object: object("Pod", "web-1"), Health: readiness.Result{Status: readiness.InProgress, Message: "not ready"}}
	deployment := &tree.Node{Object: object("Deployment", "web"), Health: readiness.Result{Status: readiness.Current}, Owned: []*tree.Node{pod}}
	err := tree.Write(os.Stdout, &tree.Tree{Roots: []*tree.Node{deployment}}, &tree.WriteOptions{Now: time.Now()})
	fmt.Println(err)
	// Output:
	// OBJECT           STATUS       AGE         MESSAGE
	// Deployment/web   Current      <unknown>
	// └─Pod/web-1      InProgress   <unknown>   not ready
	// <nil>
}
