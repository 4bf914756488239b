package cache_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// lossyServer is a server with a ConfigMap that is deleted at resourceVersion 8. Its watches have not the deletion, but a bookmark.
// A program calls transport.Load and dynamic.Connect.
func lossyServer(ctx context.Context) (configMaps *dynamic.Resource, closeAll func()) {
	api := scripted.New("/v1 configmaps configmap ConfigMap")
	web := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"1","resourceVersion":"7"}}`
	api.Handle("WATCH /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			fmt.Fprint(w, scripted.Event("ADDED", web), scripted.InitialEventsEnd("v1", "ConfigMap", "7"))
		}
		bookmark := scripted.Event("BOOKMARK", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"8"}}`)
		for r.Context().Err() == nil {
			fmt.Fprint(w, bookmark)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	list := scripted.JSON(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"8"},"items":[]}`)
	api.Handle("", list)
	server := httptest.NewServer(api)
	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	configMaps, err = client.Resource(ctx, "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	return configMaps.AllNamespaces(), func() { client.Close(); server.Close() }
}

func ExampleAudit() {
	ctx, cancel := context.WithCancel(context.Background())
	configMaps, closeAll := lossyServer(ctx)
	defer closeAll()
	defer cancel()

	results := make(chan cache.AuditResult, 1)
	c := cache.New(configMaps, &cache.Options[unstructured.Object]{Audit: &cache.Audit{
		Interval: time.Millisecond, // an hour by default
		OnResult: func(result cache.AuditResult) {
			if len(result.Differences) > 0 {
				results <- result
			}
		},
	}})
	go func() { _ = c.Run(ctx) }()
	for _, difference := range (<-results).Differences {
		fmt.Println(difference)
	}
	for range c.Changes(ctx) {
		if len(c.List("", nil)) == 0 {
			break
		}
	}
	fmt.Println("repaired")
	// Output:
	// shop/web is resourceVersion 7 of UID 1 in the cache, and missing on the server
	// repaired
}
