package apitest_test

import (
	"context"
	"fmt"
	"log"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// settings is an object for the examples.
func settings() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "settings"},
	}}
}

// A test calls apitest.NewServer(t, nil), which ends with the test.
func ExampleStart() {
	ctx := context.Background()
	server, err := apitest.Start(&apitest.Options{Objects: []*unstructured.Object{settings()}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	configMaps, err := server.Client().Resource(ctx, "cm") // Kubeconfig, Config and HTTPClient are for other clients
	if err != nil {
		log.Fatal(err)
	}
	patched, err := configMaps.Patch(ctx, "settings", types.MergePatchType, []byte(`{"data": {"color": "red"}}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(patched.Object["data"])
	for _, request := range server.Requests(apitest.OfResource("configmaps"), apitest.Succeeded) {
		fmt.Println(request.Verb, request.Namespace, request.Name, request.Code)
	}
	// Output:
	// map[color:red]
	// patch default settings 200
}

func ExampleServer_Inject() {
	ctx := context.Background()
	server, err := apitest.Start(&apitest.Options{Objects: []*unstructured.Object{settings()}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	configMaps, err := server.Client().Resource(ctx, "cm")
	if err != nil {
		log.Fatal(err)
	}
	server.Inject(apitest.Fault{
		Match: apitest.OfResource("configmaps", "delete"), Times: 1,
		Err: apierrors.NewInternalError(fmt.Errorf("etcd is down")),
	})
	for range 2 {
		_, err = configMaps.Delete(ctx, "settings", nil)
		fmt.Println(err)
	}
	// Output:
	// Internal error occurred: etcd is down
	// <nil>
}
