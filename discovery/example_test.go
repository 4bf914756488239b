package discovery_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/transport"
)

func ExampleClient_Snapshot() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if r.URL.Path == "/apis" {
			fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
			return
		}
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
			{"resource":"pods","singularResource":"pod","shortNames":["po"],"scope":"Namespaced",
			 "responseKind":{"version":"v1","kind":"Pod"},"verbs":["get","list"],
			 "subresources":[{"subresource":"log","verbs":["get"]}]}]}]}]}`)
	}))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	snapshot, err := discovery.New(conn, nil).Snapshot(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				_, hasLog := resource.Subresource("log")
				fmt.Println(resource.GVK.Kind, resource.GVR.Resource, resource.ShortNames, resource.Supports("watch"), hasLog)
			}
		}
	}
	// Output: Pod pods [po] false true
}
