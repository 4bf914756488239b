package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/exampletest"
	"github.com/anykind/anykind/unstructured"
)

// settings is an object for the examples.
func settings() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "settings"},
	}}
}

// A test of a program that updates a ConfigMap. The first update conflicts, and Upsert retries it.
func ExampleNewServer() {
	t, end := exampletest.New() // a test has its *testing.T
	defer end()

	server := apitest.NewServer(t, &apitest.Options{Objects: []*unstructured.Object{settings()}}) // ends with the test
	isUpdate := apitest.OfResource("configmaps", "update")
	server.Inject(apitest.Fault{
		Match: isUpdate, Times: 1,
		Err: apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "settings", errors.New("it was modified")),
	})
	configMaps, err := server.Client().Resource(t.Context(), "configmaps")
	if err != nil {
		t.Fatalf("%v", err)
	}
	change := func(obj *unstructured.Object) error { return unstructured.Set(obj, "red", "data", "color") }
	_, outcome, err := configMaps.Upsert(t.Context(), "settings", change, nil)
	fmt.Println(outcome, err)
	fmt.Println(server.AssertRequests(t, 2, isUpdate), server.AssertRequests(t, 1, isUpdate, apitest.Succeeded))
	// Output:
	// updated <nil>
	// true true
}

// The test runs on apitest or, with the environment variable APITEST_KUBECONFIG, on a real server, in a namespace of its own.
func ExampleNewTarget() {
	t, end := exampletest.New()
	defer end()

	color := settings()
	color.SetNamespace("") // the namespace of the test
	target := apitest.NewTarget(t, &apitest.Options{Objects: []*unstructured.Object{color}})
	configMaps, err := target.Client().Resource(t.Context(), "configmaps")
	if err != nil {
		t.Fatalf("%v", err)
	}
	found, err := configMaps.Namespace(target.Namespace()).Get(t.Context(), "settings", nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	fmt.Println(found.GetName(), found.GetNamespace() == target.Namespace())
	// Output: settings true
}

// A client sees the rights of its user.
func ExampleServer_ConfigFor() {
	ctx := context.Background()
	server, err := apitest.Start(&apitest.Options{
		Users: []apitest.User{{Name: "ann", Token: "secret-of-ann"}}, RBAC: true, Objects: []*unstructured.Object{settings()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ann, err := dynamic.Connect(ctx, server.ConfigFor("secret-of-ann"))
	if err != nil {
		log.Fatal(err)
	}
	defer ann.Close()
	configMaps, err := ann.Resource(ctx, "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	_, err = configMaps.Namespace("default").Get(ctx, "settings", nil)
	fmt.Println(err)
	// Output:
	// configmaps "settings" is forbidden: User "ann" cannot get resource "configmaps" in API group "" in the namespace "default"
}

// A restart of the server breaks its watches, and after a compaction old ones get 410. Follow emits each change once.
func ExampleServer_Restart() {
	ctx := context.Background()
	server, err := apitest.Start(&apitest.Options{Objects: []*unstructured.Object{settings()}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	configMaps, err := server.Client().Resource(ctx, "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	for change, err := range configMaps.Namespace("default").Follow(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		if change.Object != nil {
			fmt.Println(change.Type, change.Object.GetName())
		}
		if change.Type == watch.Deleted {
			break
		}
		if change.Type != dynamic.Synced {
			continue
		}
		if _, err := configMaps.Delete(ctx, "settings", nil); err != nil {
			log.Fatal(err)
		}
		server.Compact() // the history before this is gone: a watch from there is a 410
		if err := server.Restart(0); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// ADDED settings
	// DELETED settings
}

// Without a test, Start starts a server until Close. A test calls [apitest.NewServer].
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

// An overloaded server. With a time in the response, the connection waits for it and retries the request.
func ExampleTooManyRequests() {
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
	server.Inject(apitest.Fault{Match: apitest.OfResource("configmaps", "get"), Err: apitest.TooManyRequests(0)})
	_, err = configMaps.Get(ctx, "settings", nil)
	fmt.Println(apierrors.IsTooManyRequests(err))

	seconds, isKnown := apierrors.SuggestsClientDelay(apitest.TooManyRequests(time.Minute))
	fmt.Println(seconds, isKnown)
	// Output:
	// true
	// 60 true
}
