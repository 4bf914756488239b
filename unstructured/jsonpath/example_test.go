package jsonpath_test

import (
	"fmt"
	"log"
	"os"

	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/jsonpath"
)

func ExampleTemplate_Execute() {
	list, err := unstructured.Decode([]byte(`{"kind":"PodList","apiVersion":"v1","items":[
		{"metadata":{"name":"web-0"},"status":{"phase":"Running"}},
		{"metadata":{"name":"web-1"},"status":{"phase":"Pending"}}]}`))
	if err != nil {
		log.Fatal(err)
	}
	template, err := jsonpath.Parse(`{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}`, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := template.Execute(os.Stdout, list); err != nil {
		log.Fatal(err)
	}

	_, err = jsonpath.Parse(`{.items[?(@.status.phase="Running")].metadata.name}`, nil)
	fmt.Println(err)
	// Output:
	// web-0	Running
	// web-1	Pending
	// jsonpath: byte 24: "=" is no operator (==, !=, <, <=, > and >= are)
}

func ExampleTemplate_Values() {
	pod, err := unstructured.DecodeLazy([]byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[
		{"name":"app","image":"web:1"},{"name":"log","image":"log:2"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	template, err := jsonpath.Parse(`{.spec.containers[*].image}`, nil)
	if err != nil {
		log.Fatal(err)
	}
	images, err := template.Values(pod)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(images), images)
	// Output: 2 [web:1 log:2]
}
