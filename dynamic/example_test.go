package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// shop is a server with two pods, for the examples; a program calls transport.Load and dynamic.Connect.
func shop() (pods *dynamic.Resource, closeAll func()) {
	client, closeAll := shopClient()
	return found(client, "po").Namespace("shop"), closeAll
}

// found returns the handle of a name.
func found(client *dynamic.Client, name string) *dynamic.Resource {
	resource, err := client.Resource(context.Background(), name)
	if err != nil {
		log.Fatal(err)
	}
	return resource
}

// connectTo returns the client of a server.
func connectTo(handler http.Handler) (client *dynamic.Client, closeAll func()) {
	server := httptest.NewServer(handler)
	client, err := dynamic.Connect(context.Background(), &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { client.Close(); server.Close() }
}

func shopClient() (client *dynamic.Client, closeAll func()) {
	const web = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"spec":{"priority":7}}`
	const items = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"db"}},{"metadata":{"name":"web"}}]}`
	server := scripted.New(resources)
	server.Handle("", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.Header.Get("Accept"), "as=Table"):
			fmt.Fprint(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"},{"name":"Restarts"}],"rows":[
				{"cells":["db",0],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"db"}}},
				{"cells":["web",2],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}}]}`)
		case r.URL.Query().Get("watch") == "true":
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}{"type":"DELETED","object":%s}`, web, web)
		case strings.Contains(r.URL.Path, "/proxy/"):
			fmt.Fprint(w, "<h1>welcome</h1>")
		case strings.HasSuffix(r.URL.Path, "/token"):
			fmt.Fprint(w, tokenReply)
		case strings.HasSuffix(r.URL.Path, "/eviction"):
			blocked(w, r)
		case r.Method == http.MethodPost || r.Method == http.MethodPut:
			_, _ = io.Copy(w, r.Body)
		case r.Method == http.MethodPatch:
			fmt.Fprint(w, strings.Replace(web, "7", "8", 1))
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/pods"):
			fmt.Fprint(w, items)
		case r.Method == http.MethodDelete:
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		case strings.HasSuffix(r.URL.Path, "/web"):
			fmt.Fprint(w, web)
		default:
			fmt.Fprint(w, items)
		}
	})
	return connectTo(server)
}

func ExampleHandle_Get() {
	pods, closeAll := shop()
	defer closeAll()

	web, err := pods.Get(context.Background(), "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	priority, found, err := unstructured.Get[int64](web, "spec", "priority")
	fmt.Println(priority, found, err)

	_, err = pods.Get(context.Background(), "../nodes", nil)
	fmt.Println(err)
	// Output:
	// 7 true <nil>
	// get pods "../nodes": the name may not contain '/'
}

func ExampleHandle_List() {
	pods, closeAll := shop()
	defer closeAll()

	for pod, err := range pods.List(context.Background(), &metav1.ListOptions{LabelSelector: "tier=front"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pod.GetKind(), pod.GetName())
	}
	// Output:
	// Pod db
	// Pod web
}

func ExampleHandle_WithPageOptions() {
	pods, closeAll := shop()
	defer closeAll()

	patient := pods.WithPageOptions(&dynamic.PageOptions{
		OnPage:    func(page metav1.ListMeta) { fmt.Println("page at resource version", page.ResourceVersion) },
		OnExpired: func(error) dynamic.ExpiryPolicy { return dynamic.ExpiryContinue },
	})
	for pod, err := range patient.List(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pod.GetName())
	}
	// Output:
	// db
	// web
	// page at resource version 9
}

func ExampleHandle_DeleteCollection() {
	pods, closeAll := shop()
	defer closeAll()

	deleted, err := pods.DeleteCollection(context.Background(), nil, &metav1.ListOptions{LabelSelector: "tier=front"})
	if err != nil {
		log.Fatal(err)
	}
	for _, pod := range deleted.Items {
		fmt.Println(pod.GetName())
	}

	_, err = pods.DeleteCollection(context.Background(), nil, &metav1.ListOptions{LabelSelector: "tier=front,"})
	fmt.Println(err)
	// Output:
	// db
	// web
	// deletecollection pods: the label selector "tier=front," cannot be parsed: found '', expected: identifier after ','
}

func ExampleHandle_Watch() {
	pods, closeAll := shop()
	defer closeAll()

	for event, err := range pods.Watch(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type, event.Object.GetName())
	}
	// Output:
	// ADDED web
	// DELETED web
}

func ExampleHandle_Create() {
	pods, closeAll := shop()
	defer closeAll()

	created, err := pods.Create(context.Background(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "cache"},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "cache", "image": "cache:1"}}},
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created.GroupVersionKind(), created.GetName())
	// Output: /v1, Kind=Pod cache
}

func ExampleHandle_Patch() {
	pods, closeAll := shop()
	defer closeAll()

	patched, err := pods.Patch(context.Background(), "web", types.MergePatchType, []byte(`{"spec":{"priority":8}}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(unstructured.Get[int64](patched, "spec", "priority"))
	// Output: 8 true <nil>
}

func ExampleHandle_Apply() {
	pods, closeAll := shop()
	defer closeAll()

	applied, err := pods.Apply(context.Background(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"priority": int64(8)},
	}}, &metav1.ApplyOptions{FieldManager: "example"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(unstructured.Get[int64](applied, "spec", "priority"))
	// Output: 8 true <nil>
}

func ExampleHandle_Delete() {
	pods, closeAll := shop()
	defer closeAll()

	gone, err := pods.Delete(context.Background(), "web", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gone.Object == nil, gone.Status.Status)
	// Output: true Success
}

func ExampleHandle_Subresource() {
	pods, closeAll := shop()
	defer closeAll()

	_, err := pods.Subresource("scale").Get(context.Background(), "web", nil)
	fmt.Println(err)
	// Output: get pods/scale "web": the server serves no such subresource (there are: status, eviction)
}

func ExampleHandle_Evict() {
	pods, closeAll := shop()
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // how long the budget may take
	defer cancel()
	err := pods.Evict(ctx, "web", &dynamic.EvictOptions{Retry: true})
	var blocked *dynamic.DisruptionBudgetError
	if errors.As(err, &blocked) {
		fmt.Println(blocked.Causes[0])
	}
	// Output: The disruption budget web needs 2 healthy pods and has 2 currently
}

func ExampleHandle_CreateToken() {
	client, closeAll := shopClient()
	defer closeAll()

	accounts, err := client.Resource(context.Background(), "sa")
	if err != nil {
		log.Fatal(err)
	}
	token, err := accounts.CreateToken(context.Background(), "robot", &dynamic.TokenOptions{Audiences: []string{"vault"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token, len(token.Token))
	// Output: token that expires at 2026-01-02T03:04:05Z 6
}

func ExampleHandle_Scale() {
	client, closeAll := shopClient()
	defer closeAll()

	deployments, err := client.Resource(context.Background(), "deploy")
	if err != nil {
		log.Fatal(err)
	}
	_, err = deployments.Scale(context.Background(), "web", 3, nil)
	fmt.Println(err)

	nodes, err := client.Resource(context.Background(), "nodes")
	if err != nil {
		log.Fatal(err)
	}
	_, err = nodes.Scale(context.Background(), "n1", 3, nil)
	fmt.Println(err)
	// Output:
	// <nil>
	// patch nodes/scale "n1": the server serves no such subresource (there are: none)
}

// The response of a proxy is no object: request the subresource's path.
func ExampleHandle_Path_proxy() {
	pods, closeAll := shop()
	defer closeAll()

	path, err := pods.Subresource("proxy").Path("web")
	if err != nil {
		log.Fatal(err)
	}
	response, err := pods.Conn().Do(context.Background(), &transport.Request{Path: path + "/index.html"})
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	_, err = io.Copy(os.Stdout, response.Body)
	if err != nil {
		log.Fatal(err)
	}
	// Output: <h1>welcome</h1>
}

func ExampleApplyConflictError() {
	pods, closeAll := contested()
	defer closeAll()

	_, err := pods.Apply(context.Background(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"tier": "back"}},
	}}, &metav1.ApplyOptions{FieldManager: "example"})
	var conflict *dynamic.ApplyConflictError
	if errors.As(err, &conflict) {
		for _, of := range conflict.Conflicts {
			fmt.Println(of.Manager, "owns", of.Field)
		}
	}
	fmt.Println(apierrors.IsConflict(err))
	// Output:
	// editor owns .metadata.labels.tier
	// true
}

// contested is a server whose pods another manager owns.
func contested() (pods *dynamic.Resource, closeAll func()) {
	server := scripted.New(resources)
	server.Handle("", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"details":{"causes":[
			{"reason":"FieldManagerConflict","message":"conflict with \"editor\" using v1","field":".metadata.labels.tier"}]}}`)
	})
	client, closeAll := connectTo(server)
	return found(client, "po"), closeAll
}
