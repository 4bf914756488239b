package web_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/web"
	"github.com/anykind/anykind/transport"
)

// The server of this example stands for a cluster: a program calls dynamic.Connect(ctx, nil).
func ExampleHandler() {
	api := scripted.New("/v1 configmaps configmap ConfigMap")
	api.Handle("WATCH /api/v1/configmaps", scripted.Watch(
		scripted.Event("ADDED", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"colors","uid":"u1","resourceVersion":"4"}}`),
		scripted.InitialEventsEnd("v1", "ConfigMap", "5")))
	server := httptest.NewServer(api)
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	objects := inventory.NewCache(client, nil)
	ended := make(chan error, 1)
	go func() { ended <- objects.Run(ctx) }()
	if err := objects.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}

	// A program listens: http.ListenAndServe("127.0.0.1:8080", web.Handler(objects, nil)).
	response := httptest.NewRecorder()
	web.Handler(objects, nil).ServeHTTP(response, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/objects?kind=ConfigMap&format=json", nil))
	fmt.Print(response.Body)

	cancel()
	fmt.Println(<-ended)
	// Output:
	// {"objects":[{"apiVersion":"v1","resource":"configmaps","kind":"ConfigMap","namespace":"shop","name":"colors","uid":"u1","readiness":"Current"}],"query":{"format":["json"],"kind":["ConfigMap"]}}
	// run a cache of all kinds: context canceled
}
