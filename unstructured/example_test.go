package unstructured_test

import (
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

func ExampleDecode() {
	obj, err := unstructured.Decode([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3,"scale":1.5}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(obj.GroupVersionKind(), obj.GetName())
	spec := obj.Object["spec"].(map[string]any)
	fmt.Printf("%T %T\n", spec["size"], spec["scale"])
	// Output:
	// example.com/v1, Kind=Widget a
	// int64 float64
}

func ExampleEncode() {
	obj := &unstructured.Object{Object: map[string]any{
		"kind":       "ConfigMap",
		"apiVersion": "v1",
		"metadata":   map[string]any{"name": "page"},
		"data":       map[string]string{"index.html": "<h1>"},
	}}
	data, err := unstructured.Encode(obj)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data))
	// Output:
	// {"apiVersion":"v1","data":{"index.html":"<h1>"},"kind":"ConfigMap","metadata":{"name":"page"}}
}

func ExampleGet() {
	obj, err := unstructured.Decode([]byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"image":"web:1","args":["-v"]}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	image, found, err := unstructured.Get[string](obj, "spec", "containers", "0", "image")
	fmt.Println(image, found, err)
	args, found, err := unstructured.Get[[]string](obj, "spec", "containers", "0", "args")
	fmt.Println(args, found, err)
	node, found, err := unstructured.Get[string](obj, "spec", "nodeName")
	fmt.Printf("%q %v %v\n", node, found, err)
	_, _, err = unstructured.Get[int64](obj, "spec", "containers", "0", "image")
	fmt.Println(err)
	// Output:
	// web:1 true <nil>
	// [-v] true <nil>
	// "" false <nil>
	// .spec.containers[0].image: is string, not int64
}

func ExampleListDecoder() {
	body := strings.NewReader(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`)
	items := unstructured.NewListDecoder(body)
	for {
		obj, err := items.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err) // the items so far are good, but they are not all
		}
		fmt.Println(obj.GetKind(), obj.GetName())
	}
	fmt.Println("as of", items.Meta().ResourceVersion)
	// Output:
	// Pod a
	// Pod b
	// as of 7
}

func ExampleWatchDecoder() {
	body := strings.NewReader(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}
{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}}
`)
	events := unstructured.NewWatchDecoder(body)
	for {
		event, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type, event.Object.GetKind(), event.Object.GetName())
	}
	// Output:
	// ADDED Pod a
	// ERROR Status
}

func ExampleWatchDecoder_Buffered() {
	const pod = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}`
	events := unstructured.NewWatchDecoder(strings.NewReader(pod + "\n" + pod + "\n"))
	for range 2 {
		if _, err := events.Next(); err != nil {
			log.Fatal(err)
		}
		fmt.Println("more events are here:", events.Buffered() > 0)
	}
	// Output:
	// more events are here: true
	// more events are here: false
}

func ExampleLazy() {
	body := strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"},"status":{"phase":"Running"}},{"metadata":{"name":"b"},"status":{"phase":"Failed"}}]}`)
	items := unstructured.NewListDecoder(body)
	for {
		pod, err := items.NextLazy()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		phase, _, err := unstructured.Get[string](pod, "status", "phase") // decodes nothing else
		if err != nil {
			log.Fatal(err)
		}
		if phase != "Failed" {
			continue
		}
		full, err := pod.Object()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pod.GetName(), full.Object["status"])
	}
	// Output:
	// b map[phase:Failed]
}

func ExampleLazy_Without() {
	pod, err := unstructured.DecodeLazy([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","managedFields":[{"manager":"kubelet"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", pod.Without("metadata", "managedFields").JSON())
	// Output: {"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}
}
