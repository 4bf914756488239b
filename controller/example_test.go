package controller_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const exampleIndex = `{"kind":"APIGroupDiscoveryList","items":[
	{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
		{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget",
		 "verbs":["create","delete","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"status","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"verbs":["get","patch","update"]}]}]}]},
	{"metadata":{"name":"coordination.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"leases","responseKind":{"group":"coordination.k8s.io","version":"v1","kind":"Lease"},"scope":"Namespaced","singularResource":"lease","verbs":["create","get","update"]}]}]},
	{"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"events","responseKind":{"group":"events.k8s.io","version":"v1","kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["create","patch"]}]}]}]}`

// exampleServer shows what is written to it and answers with a widget, or with what it was sent; a program calls
// transport.Load and dynamic.Connect.
func exampleServer() (client *dynamic.Client, closeAll func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		index := map[string]string{"/api": `{"kind":"APIGroupDiscoveryList","items":[]}`, "/apis": exampleIndex}[r.URL.Path]
		switch {
		case index != "":
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			fmt.Fprint(w, index)
		case r.Method == http.MethodPatch:
			fmt.Println(r.Method, r.URL.Path, string(body))
			fmt.Fprint(w, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web","namespace":"shop","uid":"7","generation":2,"finalizers":["example.com/disk"]}}`)
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/leases/"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","details":{"name":"widgets"}}`)
		default:
			_, _ = w.Write(body)
		}
	}))
	client, err := dynamic.Connect(context.Background(), &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { client.Close(); server.Close() }
}

// exampleWidgets gives a handle on widgets and one of them, as a cache or a Get has it.
func exampleWidgets() (widgets *dynamic.Resource, web *unstructured.Object, closeAll func()) {
	client, closeAll := exampleServer()
	widgets, err := client.Resource(context.Background(), "widgets")
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

func ExampleConditions() {
	_, web, closeAll := exampleWidgets()
	defer closeAll()

	web.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "Starting", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}
	for _, condition := range controller.Conditions(web, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pulling"}) {
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
	// make Widget "web" the owner of PersistentVolumeClaim "web-disk": the owner is in namespace "shop", the object in none: set its namespace; a cluster-scoped object cannot have such an owner
	// <nil>
	// true
}

func ExampleRecorder() {
	ctx := context.Background()
	client, closeAll := exampleServer()
	defer closeAll()

	recorder, err := controller.NewRecorder(ctx, client, "example.com/widgets", nil)
	if err != nil {
		log.Fatal(err)
	}
	web := &unstructured.Object{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "7"},
	}}
	recorder.Record(web, controller.Event{Type: "Warning", Reason: "DiskFull", Action: "Resize", Note: "no space is left on the disk of web"})
	fmt.Println(recorder.Close(ctx), recorder.Dropped())
	// Output: <nil> 0
}

func ExampleLead() {
	ctx := context.Background()
	client, closeAll := exampleServer()
	defer closeAll()
	leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
	if err != nil {
		log.Fatal(err)
	}

	err = controller.Lead(ctx, leases.In("shop"), "widgets", nil, func(ctx context.Context, token int64) error {
		fmt.Println("leading, with the token", token)
		return nil // a controller runs until ctx ends
	})
	fmt.Println(err)
	// Output:
	// leading, with the token 0
	// <nil>
}

func ExampleRegister() {
	client, closeAll := exampleServer()
	defer closeAll()

	_, err := controller.Register(context.Background(), client, []byte("apiVersion: v1\nkind: ConfigMap\n"), nil)
	fmt.Println(err)
	// Output: register definitions: document 1 is a ConfigMap of v1, not a CustomResourceDefinition of apiextensions.k8s.io/v1
}
