package restmapper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// apps are the resources of a server, in the format of scripted.Index.
const apps = "apps/v1 deployments deployment Deployment deploy all get,list"

func ExampleMapper_Resource() {
	server := httptest.NewServer(scripted.New(apps))
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
	server := httptest.NewServer(scripted.New(apps))
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
	server := httptest.NewServer(scripted.New(apps))
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

func ExampleMapper_WaitForResources() {
	server := httptest.NewServer(scripted.New(apps))
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
	server := httptest.NewServer(scripted.New(apps))
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
