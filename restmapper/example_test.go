package restmapper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

func ExampleMapper_Resource() {
	server := httptest.NewServer(http.HandlerFunc(serveApps))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	mapper := restmapper.New(discovery.New(conn, nil))

	for _, name := range []string{"deploy", "Deployment", "deployments.v1.apps", "deployed"} {
		mapping, err := mapper.Resource(context.Background(), name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(mapping.GVR, mapping.GVK.Kind, mapping.Namespaced, mapping.Verbs)
	}
	// Output:
	// apps/v1, Resource=deployments Deployment true [get list]
	// apps/v1, Resource=deployments Deployment true [get list]
	// apps/v1, Resource=deployments Deployment true [get list]
	// the server serves no resource or kind "deployed": did you mean deployments.apps?
}

func ExampleMapper_Resources() {
	server := httptest.NewServer(http.HandlerFunc(serveApps))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	mapper := restmapper.New(discovery.New(conn, nil))

	mappings, err := mapper.Resources(context.Background(), "all")
	if err != nil {
		log.Fatal(err)
	}
	for _, mapping := range mappings {
		fmt.Println(mapping.GVR.GroupResource())
	}
	_, err = mapper.Resource(context.Background(), "all")
	fmt.Println(err)
	// Output:
	// deployments.apps
	// the server serves no resource or kind "all"; it is a category, the name of several resources
}

// What takes a meta.RESTMapper, such as controller-runtime's client.Options or Helm's getter, takes this one.
func ExampleMapper_RESTMapper() {
	server := httptest.NewServer(http.HandlerFunc(serveApps))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	var mapper meta.RESTMapper = restmapper.New(discovery.New(conn, nil)).RESTMapper(context.Background())
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mapping.Resource, mapping.Scope.Name())
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deploymnet"})
	fmt.Println(meta.IsNoMatchError(err), err)
	// Output:
	// apps/v1, Resource=deployments namespace
	// true no matches for kind "Deploymnet" in group "apps"
}

// serveApps answers discovery as a server with nothing but deployments does.
func serveApps(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if r.URL.Path == "/api" {
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
		return
	}
	fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
		{"resource":"deployments","singularResource":"deployment","shortNames":["deploy"],"categories":["all"],"scope":"Namespaced",
		 "responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"verbs":["get","list"]}]}]}]}`)
}

func ExampleMapper_WaitForResources() {
	server := httptest.NewServer(http.HandlerFunc(serveApps))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	mapper := restmapper.New(discovery.New(conn, nil))

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	mappings, err := mapper.WaitForResources(ctx, "deploy")
	fmt.Println(len(mappings), err)
	_, err = mapper.WaitForResources(ctx, "deploy", "deployed")
	fmt.Println(errors.Is(err, context.DeadlineExceeded), meta.IsNoMatchError(err))
	// Output:
	// 1 <nil>
	// true true
}

func ExampleMapper_WaitForKinds() {
	server := httptest.NewServer(http.HandlerFunc(serveApps))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mappings, err := restmapper.New(discovery.New(conn, nil)).WaitForKinds(ctx, schema.GroupVersionKind{Group: "apps", Kind: "Deployment"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mappings[0].GVR)
	// Output: apps/v1, Resource=deployments
}
