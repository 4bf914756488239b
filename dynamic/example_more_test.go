package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func ExampleHandle_Metadata() {
	pods, closeAll := shop()
	defer closeAll()

	web, err := pods.Metadata().Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, found, err := unstructured.Get[int64](web, "spec", "priority")
	fmt.Println(web.GetName(), web.GetKind(), found, err)
	// Output: web Pod false <nil>
}

func ExampleHandle_ProbeSharding() {
	pods, closeAll := shop()
	defer closeAll()

	isSharded, err := pods.ProbeSharding(context.Background())
	fmt.Println(isSharded, err)
	// Output: false <nil>
}

func ExampleHandle_Tables() {
	pods, closeAll := shop()
	defer closeAll()

	for row, err := range pods.Tables(metav1.IncludeObject).List(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Columns[1].Name, row.Cells[1], row.Object.GetName())
	}
	// Output:
	// Restarts 0 db
	// Restarts 2 web
}

func ExampleAs_lazy() {
	pods, closeAll := shop()
	defer closeAll()
	ctx := context.Background()

	lazyPods := dynamic.As[unstructured.Lazy](pods)
	web := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	if _, err := pods.Create(ctx, web, nil); err != nil { // writes an Object
		log.Fatal(err)
	}
	stored, err := lazyPods.Get(ctx, "web", nil) // reads a Lazy
	if err != nil {
		log.Fatal(err)
	}
	priority, _, err := unstructured.Get[int64](stored, "spec", "priority")
	fmt.Println(stored, priority, err)
	// Output: Pod shop/web 7 <nil>
}

func ExampleClient_ForObjects() {
	client, closeAll := shopClient()
	defer closeAll()
	ctx := context.Background()

	file := strings.NewReader(`apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, namespace: default}}
- {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}
`)
	for manifest, err := range client.ForObjects(ctx, unstructured.NewYAMLDecoder(file).All()) {
		if err != nil {
			log.Fatal(err)
		}
		if manifest.Warning != "" {
			fmt.Println("warning:", manifest.Warning)
		}
		applied, err := manifest.Resource.Apply(ctx, manifest.Object, &metav1.ApplyOptions{FieldManager: "example"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(manifest.Resource, applied.GetName())
	}
	// Output:
	// warning: namespaces "shop": dropped namespace "default": Namespace is cluster-scoped
	// namespaces web
	// pods web
}

func ExampleHandle_Upsert() {
	pods, closeAll := shop()
	defer closeAll()

	important := func(pod *unstructured.Object) error {
		return unstructured.Set(pod, 9, "spec", "priority")
	}
	web, outcome, err := pods.Upsert(context.Background(), "web", important, nil)
	if err != nil {
		log.Fatal(err)
	}
	priority, _, err := unstructured.Get[int64](web, "spec", "priority")
	fmt.Println(outcome, web.GetName(), priority, err)
	// Output: updated web 9 <nil>
}

func ExampleRetryOnConflict() {
	pods, closeAll := shop()
	defer closeAll()

	err := dynamic.RetryOnConflict(context.Background(), func(ctx context.Context) error {
		web, err := pods.Get(ctx, "web", nil)
		if err != nil {
			return err
		}
		web.SetLabels(map[string]string{"tier": "front"})
		_, err = pods.Update(ctx, web, nil)
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleHandle_Wait() {
	pods, closeAll := shop()
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	web, err := pods.Wait(ctx, "web", dynamic.Exists(), dynamic.FieldEquals("spec.priority", 7))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.GetName())

	short, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, err = pods.Wait(short, "web", dynamic.Condition("Ready"))
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// web
	// true
}

func ExampleHandle_WithWaitOptions() {
	pods, closeAll := shop()
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods = pods.WithWaitOptions(&dynamic.WaitOptions{OnProgress: func(progress dynamic.WaitProgress) {
		fmt.Println("web:", progress)
	}})
	_, err := pods.Wait(ctx, "web", dynamic.FieldEquals("spec.priority", 7))
	fmt.Println(err)
	// Output:
	// web: spec.priority is missing
	// web: done
	// <nil>
}

func ExampleAs() {
	resource, closeAll := shop()
	defer closeAll()

	type Pod struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			Priority int `json:"priority,omitempty"`
		} `json:"spec,omitzero"`
	}
	pods := dynamic.As[Pod](resource)
	web, err := pods.Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.Name, web.Spec.Priority)

	created, err := pods.Create(context.Background(), &Pod{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created.Kind, created.Name)
	// Output:
	// web 7
	// Pod cache
}

func ExampleDecode() {
	pods, closeAll := shop()
	defer closeAll()
	newObject := func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} } // of a scheme, for instance
	decoded := dynamic.Decode(pods, dynamic.Decoder[metav1.PartialObjectMetadata]{
		Lazy: func(lazy *unstructured.Lazy) (*metav1.PartialObjectMetadata, error) {
			obj := newObject()
			return obj, unstructured.Into(lazy, obj)
		},
		Message: func(message []byte) (*metav1.PartialObjectMetadata, error) { // with transport.Options.Protobuf
			obj := newObject()
			return obj, obj.Unmarshal(message)
		},
	})
	web, err := decoded.Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.Kind, web.Name)
	// Output: Pod web
}

func ExampleHandle_OnWrite() {
	pods, closeAll := shop()
	defer closeAll()
	observed := pods.OnWrite(func(context.Context, string, string) func(dynamic.Write) {
		return func(w dynamic.Write) { fmt.Println(w.Namespace+"/"+w.Name, w.ResourceVersion == "") }
	})
	if _, err := observed.Delete(context.Background(), "web", nil); err != nil {
		log.Fatal(err)
	}
	// Output: shop/web true
}
