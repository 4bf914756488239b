package restmapper_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

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
	mapper := restmapper.New(discovery.New(conn))

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

// serveApps says what a server with nothing but deployments says.
func serveApps(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if r.URL.Path == "/api" {
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
		return
	}
	fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
		{"resource":"deployments","singularResource":"deployment","shortNames":["deploy"],"scope":"Namespaced",
		 "responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"verbs":["get","list"]}]}]}]}`)
}
