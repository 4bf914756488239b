package clustercopy_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/unstructured"
)

// cluster starts a server with an object, in place of a cluster.
func cluster() *apitest.Server {
	server, err := apitest.Start(&apitest.Options{InMemory: true, Objects: []*unstructured.Object{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": map[string]any{"color": "red"},
	}}}})
	if err != nil {
		log.Fatal(err)
	}
	return server
}

// A copy of a cluster is saved, loaded and served.
func ExampleFrom() {
	ctx := context.Background()
	cluster := cluster()
	defer cluster.Close()
	taken, err := clustercopy.From(ctx, cluster.Client(), &clustercopy.Options{Resources: []string{"cm"}})
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := taken.Save(&file); err != nil {
		log.Fatal(err)
	}
	loaded, err := clustercopy.Load(&file)
	if err != nil {
		log.Fatal(err)
	}
	server, err := apitest.Start(&apitest.Options{InMemory: true, Copy: loaded})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	maps, err := server.Client().Resource(ctx, "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	settings, err := maps.Namespace("default").Get(ctx, "settings", nil)
	if err != nil {
		log.Fatal(err)
	}
	color, _, err := unstructured.Get[string](settings, "data", "color")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.GetName(), color, len(server.CopyDifferences()))
	// Output: settings red 0
}

// Objects of files make a copy, too.
func ExampleOf() {
	pod := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "a-uid", "resourceVersion": "77"},
	}}
	taken, err := clustercopy.Of(pod)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(taken.Objects[0])
	// Output: Pod shop/web
}

// The file of a copy, which anyctl or a program has written. Names of files that end in .gz are compressed.
func ExampleReadFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cluster.json.gz")
	taken, err := clustercopy.Of(&unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := taken.WriteFile(path); err != nil {
		log.Fatal(err)
	}

	read, err := clustercopy.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	server, err := apitest.Start(&apitest.Options{InMemory: true, Copy: read})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	fmt.Println(read.Objects[0])
	for _, difference := range server.CopyDifferences() { // between the objects of the copy and the server
		fmt.Println(difference)
	}
	// Output: Pod shop/web
}
