package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// exampleWidgets returns a handle on widgets and one of them, as a cache or a Get returns it.
func exampleWidgets() (widgets *dynamic.Resource, web *unstructured.Object, closeAll func()) {
	client, closeAll, err := controllertest.ExampleServer(context.Background(), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	widgets, err = client.Resource(context.Background(), "widgets")
	if err != nil {
		log.Fatal(err)
	}
	return widgets, &unstructured.Object{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "7", "generation": int64(2)},
	}}, closeAll
}

func ExampleFinalize() {
	widgets, web, closeAll := exampleWidgets()
	defer closeAll()

	web, deleted, err := controller.Finalize(context.Background(), widgets, web, "example.com/disk", func(_ context.Context, web *unstructured.Object) error {
		fmt.Println("free the disk of", web.GetName())
		return nil
	})
	if err != nil || deleted {
		return // nothing is left to do
	}
	fmt.Println("make a disk for", web.GetName())
	// Output:
	// PATCH /apis/example.com/v1/namespaces/shop/widgets/web [{"op":"test","path":"/metadata/uid","value":"7"},{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/finalizers","value":["example.com/disk"]}]
	// make a disk for web
}

func ExampleSetStatus() {
	widgets, web, closeAll := exampleWidgets()
	defer closeAll()

	_, err := controller.SetStatus(context.Background(), widgets, web, map[string]any{"disks": 1})
	fmt.Println(err)
	// Output:
	// PATCH /apis/example.com/v1/namespaces/shop/widgets/web/status [{"op":"test","path":"/metadata/uid","value":"7"},{"op":"add","path":"/status","value":{"disks":1,"observedGeneration":2}}]
	// <nil>
}

func ExamplePatchStatus() {
	widgets, web, closeAll := exampleWidgets()
	defer closeAll()

	web.Object["status"] = map[string]any{"disks": int64(1), "phase": "Starting", "observedGeneration": int64(2)}
	_, err := controller.PatchStatus(context.Background(), widgets, web, map[string]any{"disks": 1, "phase": "Up"})
	fmt.Println(err)
	// Output:
	// PATCH /apis/example.com/v1/namespaces/shop/widgets/web/status [{"op":"test","path":"/metadata/uid","value":"7"},{"op":"add","path":"/status/disks","value":1},{"op":"add","path":"/status/observedGeneration","value":2},{"op":"add","path":"/status/phase","value":"Up"}]
	// <nil>
}

func ExampleMergeConditions() {
	_, web, closeAll := exampleWidgets()
	defer closeAll()

	web.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "Starting", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}
	for _, condition := range controller.MergeConditions(web, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pulling"}) {
		fmt.Println(condition)
	}
	// Output:
	// map[lastTransitionTime:2026-01-02T03:04:05Z message: observedGeneration:2 reason:Pulling status:False type:Ready]
}

func ExampleSetControllerReference() {
	_, web, closeAll := exampleWidgets()
	defer closeAll()

	disk := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}}
	disk.SetName("web-disk")
	fmt.Println(controller.SetControllerReference(web, disk))
	disk.SetNamespace("shop")
	fmt.Println(controller.SetControllerReference(web, disk))
	fmt.Println(metav1.IsControlledBy(disk, web))
	// Output:
	// set owner Widget "web" of PersistentVolumeClaim "web-disk": the owner is in namespace "shop", the object in none (set its namespace; a cluster-scoped object cannot have such an owner)
	// <nil>
	// true
}

// A ConfigMap with several owners is deleted after the last of them. Its controller stays.
func ExampleSetOwnerReference() {
	_, web, closeAll := exampleWidgets()
	defer closeAll()

	api := web.DeepCopy()
	api.SetName("api")
	api.SetUID("8")
	config := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	config.SetName("shared")
	config.SetNamespace("shop")
	fmt.Println(controller.SetControllerReference(web, config), controller.SetOwnerReference(api, config))
	for _, owner := range config.GetOwnerReferences() {
		fmt.Println(owner.Kind, owner.Name, owner.Controller != nil)
	}
	fmt.Println(controller.SetControllerReference(api, config))
	// Output:
	// <nil> <nil>
	// Widget web true
	// Widget api false
	// ConfigMap "shared" is controlled by Widget "web" (an object has one controller)
}

func ExampleRegisterCRDs() {
	client, closeAll, err := controllertest.ExampleServer(context.Background(), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	_, err = controller.RegisterCRDs(context.Background(), client, []byte("apiVersion: v1\nkind: ConfigMap\n"), nil)
	fmt.Println(err)
	// Output: register definitions: document 1 is a ConfigMap of v1, not a CustomResourceDefinition of apiextensions.k8s.io/v1
}

func ExampleOperator_WatchKind() {
	client, closeAll, err := controllertest.ExampleServer(context.Background(), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	operator := controller.NewOperator(&controller.Options{Logger: slog.New(slog.DiscardHandler)})
	gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"} // not served yet
	operator.WatchKind(client, gadget, metav1.NamespaceAll, func(_ context.Context, change cache.Change[unstructured.Object]) error {
		fmt.Println(change.Type, change.Object.GetName())
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	fmt.Println(errors.Is(operator.Run(ctx), context.DeadlineExceeded))
	// Output: true
}

func ExampleGenerationChanged() {
	before := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web", "generation": int64(2), "resourceVersion": "7"}}}
	after := before.DeepCopy()
	after.SetResourceVersion("8")
	after.Object["status"] = map[string]any{"checkedAt": "2025-01-01T00:00:00Z"}
	update := controller.UpdateEvent{ObjectOld: before, ObjectNew: after}
	fmt.Println(controller.GenerationChanged(update), controller.ResourceVersionChanged(update))
	// Output: false true
}

func ExampleLabelChanged() {
	before := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web", "labels": map[string]any{"tier": "front"}}}}
	after := before.DeepCopy()
	after.SetLabels(map[string]string{"tier": "back"})
	update := controller.UpdateEvent{ObjectOld: before, ObjectNew: after}
	fmt.Println(controller.LabelChanged(update), controller.AnnotationChanged(update))
	// Output: true false
}

func ExamplePasses() {
	before := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web", "generation": int64(1)}}}
	after := before.DeepCopy()
	after.SetGeneration(2)
	predicates := []controller.Predicate{controller.GenerationChanged}
	fmt.Println(controller.Passes(predicates, cache.Change[unstructured.Object]{Type: watch.Modified, Old: before, Object: after}))
	fmt.Println(controller.Passes(predicates, cache.Change[unstructured.Object]{Type: watch.Modified, Old: after, Object: after}))
	fmt.Println(controller.Passes(predicates, cache.Change[unstructured.Object]{Type: watch.Deleted, Old: after, Object: after}))
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleTerminalError() {
	err := fmt.Errorf("check the spec: %w", controller.TerminalError(errors.New("no such size")))
	fmt.Println(err)
	fmt.Println(errors.Is(err, controller.TerminalError(nil)))
	// Output:
	// check the spec: terminal error: no such size
	// true
}

func ExampleRetryAfter() {
	busy := errors.New("busy")
	reconcile := func(context.Context, types.NamespacedName) (time.Duration, error) {
		return 0, controller.RetryAfter(busy, time.Minute)
	}
	_, err := reconcile(context.Background(), types.NamespacedName{})
	fmt.Println(err, errors.Is(err, busy))
	// Output: busy true
}
