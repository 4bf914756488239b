package parity_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// A program with a configuration of client-go passes client-go's HTTP client, with its credentials, TLS, proxy and
// wrappers.
func Example_restConfig() {
	server := httptest.NewServer(http.HandlerFunc(clusterOfOnePod))
	defer server.Close()
	cfg := &rest.Config{Host: server.URL, BearerToken: "hidden"} // rest.InClusterConfig(), clientcmd, a controller's

	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	conn, err := transport.New(cfg.Host, client, nil)
	if err != nil {
		log.Fatal(err)
	}
	pods, err := dynamic.New(conn, nil).Resource(context.Background(), "po")
	if err != nil {
		log.Fatal(err)
	}
	for pod, err := range pods.Namespace("shop").List(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pod.GetKind(), pod.GetName())
	}
	// Output: Pod web
}

func clusterOfOnePod(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer hidden" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	responses := map[string]string{
		"/api": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
			{"resource":"pods","responseKind":{"version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod",
			 "shortNames":["po"],"verbs":["get","list"]}]}]}]}`,
		"/apis":                        `{"kind":"APIGroupDiscoveryList","items":[]}`,
		"/api/v1/namespaces/shop/pods": `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"web"}}]}`,
	}
	contentType := "application/json"
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		contentType += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, responses[r.URL.Path])
}
