package unstructured_test

import (
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

func ExampleYAMLDecoder() {
	file := strings.NewReader(`# a web server
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  replicas: 4
`)
	objects := unstructured.NewYAMLDecoder(file)
	for {
		obj, err := objects.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(obj.GetKind(), obj.GetName())
	}
	// Output:
	// Namespace shop
	// document 2, line 11: the field "replicas" is there twice
}

func ExampleYAMLDecoder_All() {
	file := strings.NewReader(`apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: page, namespace: shop}}
`)
	for obj, err := range unstructured.NewYAMLDecoder(file).All() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(obj.GetKind(), obj.GetName())
	}
	// Output:
	// Namespace shop
	// ConfigMap page
}

func ExampleEncodeYAML() {
	obj := &unstructured.Object{}
	for path, value := range map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata.name": "page", `data["index.html"]`: "<h1>\nhello\n"} {
		fields, err := unstructured.ParsePath(path)
		if err != nil {
			log.Fatal(err)
		}
		if err := unstructured.Set(obj, value, fields...); err != nil {
			log.Fatal(err)
		}
	}
	text, err := unstructured.EncodeYAML(obj)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// apiVersion: v1
	// data:
	//   index.html: |
	//     <h1>
	//     hello
	// kind: ConfigMap
	// metadata:
	//   name: page
}
