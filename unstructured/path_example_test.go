package unstructured_test

import (
	"fmt"
	"log"

	"github.com/anykind/anykind/unstructured"
)

func ExampleSet() {
	obj, err := unstructured.Decode([]byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"app","image":"web:1"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(unstructured.Set(obj, "web:2", "spec", "containers", "[name=app]", "image"))
	fmt.Println(unstructured.Set(obj, "proxy:1", "spec", "containers", "[name=proxy]", "image")) // appends
	fmt.Println(unstructured.Set(obj, map[string]string{"app": "web"}, "metadata", "labels"))
	fmt.Println(unstructured.Set(obj, 80, "spec", "containers", "[name=app]", "image", "port"))
	data, err := unstructured.Encode(obj)
	fmt.Println(string(data), err)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// .spec.containers[name=app].image: is string, not map[string]any or []any
	// {"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:2","name":"app"},{"image":"proxy:1","name":"proxy"}]}} <nil>
}

func ExampleDelete() {
	obj, err := unstructured.Decode([]byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"app"},{"name":"proxy"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(unstructured.Delete(obj, "spec", "containers", "[name=proxy]"))
	fmt.Println(unstructured.Delete(obj, "spec", "nodeName"))
	fmt.Println(obj.Object["spec"])
	// Output:
	// true <nil>
	// false <nil>
	// map[containers:[map[name:app]]]
}

func ExampleParsePath() {
	obj, err := unstructured.Decode([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"a.b/c":"d"}},"spec":{"containers":[{"name":"app","image":"web:1"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"spec.containers[name=app].image", `{.metadata.annotations['a.b/c']}`, "spec.containers[-1].image"} {
		fields, err := unstructured.ParsePath(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(unstructured.Get[string](obj, fields...))
	}
	// Output:
	// web:1 true <nil>
	// d true <nil>
	// path "spec.containers[-1].image": byte 16: "-" is no index, ["name"] or [key=value]
}

func ExampleGetAll() {
	pod, err := unstructured.Decode([]byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"app","image":"web:1"},{"name":"log"},{"name":"proxy","image":"proxy:2"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	path, err := unstructured.ParsePath("spec.containers[*].image")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(unstructured.GetAll[string](pod, path...))
	fmt.Println(unstructured.GetAll[int64](pod, path...))
	// Output:
	// [web:1 proxy:2] <nil>
	// [] .spec.containers[0].image: is string, not int64
}
