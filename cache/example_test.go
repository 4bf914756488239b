package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// configMapServer is a server with an empty collection of ConfigMaps in the namespace shop, whose watch has what is created.
// A program calls transport.Load and dynamic.Connect.
func configMapServer(ctx context.Context) (configMaps *dynamic.Resource, closeAll func()) {
	created := make(chan string, 2)
	created <- scripted.InitialEventsEnd("v1", "ConfigMap", "7")
	api := scripted.New("/v1 configmaps configmap ConfigMap")
	api.Handle("WATCH /api/v1/namespaces/shop/configmaps", scripted.WatchChannel(created))
	api.Handle("POST /api/v1/namespaces/shop/configmaps", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		obj := strings.Replace(string(body), `"metadata":{`, `"metadata":{"namespace":"shop","uid":"1","resourceVersion":"8",`, 1)
		fmt.Fprint(w, obj)
		created <- scripted.Event("ADDED", obj)
	})
	server := httptest.NewServer(api)
	client, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	configMaps, err = client.Resource(ctx, "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	return configMaps.Namespace("shop"), func() { client.Close(); server.Close() }
}

func ExampleCache_All() {
	ctx, cancel := context.WithCancel(context.Background())
	configMaps, closeAll := configMapServer(ctx)
	defer closeAll()
	defer cancel()

	c := cache.New(configMaps, nil)
	go func() { _ = c.Run(ctx) }()
	web := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	if _, err := c.TrackWrites(configMaps).Create(ctx, web, nil); err != nil {
		log.Fatal(err)
	}
	if err := c.WaitForWrites(ctx); err != nil {
		log.Fatal(err)
	}
	for entry := range c.All("shop", nil) {
		fmt.Println(entry, entry.UID(), entry.Object().GetResourceVersion())
	}
	// Output: shop/web 1 8
}

func ExampleCache_WaitForWrites() {
	ctx, cancel := context.WithCancel(context.Background())
	configMaps, closeAll := configMapServer(ctx)
	defer closeAll()
	defer cancel()

	c := cache.New(configMaps, nil)
	go func() { _ = c.Run(ctx) }()
	tracked := c.TrackWrites(configMaps)
	web := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	if _, err := tracked.Create(ctx, web, nil); err != nil {
		log.Fatal(err)
	}
	if err := c.WaitForWrites(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}); err != nil {
		log.Fatal(err)
	}
	found, ok := c.Get("shop", "web")
	fmt.Println(ok, found.GetResourceVersion())
	// Output: true 8
}

func ExampleCache_TrackWrites() {
	ctx, cancel := context.WithCancel(context.Background())
	configMaps, closeAll := configMapServer(ctx)
	defer closeAll()
	defer cancel()

	c := cache.New(configMaps, nil)
	go func() { _ = c.Run(ctx) }()
	tracked := c.TrackWrites(configMaps) // for all writes; configMaps itself is not tracked
	web := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	if _, err := tracked.Create(ctx, web, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.WaitForWrites(ctx), len(c.List("shop", nil)))
	// Output: <nil> 1
}

// pods is a source of one pod in each namespace. A program uses a handle: cache.New(pods, opts).
type pods string

func (pods) Path(string) (string, error) { return "/api/v1/pods", nil }

func (pods) Namespace(name string) cache.Source[unstructured.Object] { return pods(name) }

func (p pods) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		if p == "secret" {
			yield(dynamic.Change[unstructured.Object]{}, errors.New(`pods is forbidden in the namespace "secret"`))
			return
		}
		obj := &unstructured.Object{Object: map[string]any{"kind": "Pod"}}
		obj.SetNamespace(string(p))
		obj.SetName("web")
		yield(dynamic.Change[unstructured.Object]{Type: watch.Added, Object: obj}, nil)
		opts.OnProgress("7")
		yield(dynamic.Change[unstructured.Object]{Type: dynamic.Synced}, nil)
		<-ctx.Done()
		yield(dynamic.Change[unstructured.Object]{}, ctx.Err())
	}
}

func ExampleOptions_namespaces() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cache.New(pods(""), &cache.Options[unstructured.Object]{Namespaces: []string{"shop", "home"}})
	go func() { _ = c.Run(ctx) }()
	fmt.Println(c.WaitForSync(ctx))
	fmt.Println(len(c.List("", nil)), len(c.List("shop", nil)))
	// Output:
	// <nil>
	// 2 1
}

func ExampleHealthHandler() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	running := cache.New(pods("shop"), nil)
	go func() { _ = running.Run(ctx) }()
	if err := running.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	rejected := cache.New(pods(""), &cache.Options[unstructured.Object]{Namespaces: []string{"shop", "secret"}})
	go func() { _ = rejected.Run(ctx) }()
	var incomplete *cache.RejectedError
	if err := rejected.WaitForSync(ctx); err != nil && !errors.As(err, &incomplete) {
		log.Fatal(err)
	}
	unstarted := cache.New(pods("shop"), nil)

	for _, handler := range []http.Handler{cache.HealthHandler(running), cache.HealthHandler(running, rejected), cache.HealthHandler(running, unstarted)} {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
		fmt.Print(response.Code, " ", response.Body)
	}
	// Output:
	// 200 ok
	// 200 cache /api/v1/pods: rejected: namespace "secret": pods is forbidden in the namespace "secret"
	// 503 cache /api/v1/pods: not synced: Run has not been called
}

func ExampleCache_Health() {
	c := cache.New(pods("shop"), nil)
	fmt.Println(c.Health())
	// Output: cache /api/v1/pods: not synced: Run has not been called
}

func ExampleCache_HasSynced() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cache.New(pods("shop"), nil)
	fmt.Println(c.HasSynced())
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.HasSynced())
	// Output:
	// false
	// true
}

func ExampleCache_Staleness() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cache.New(pods("shop"), &cache.Options[unstructured.Object]{MaxStaleness: 5 * time.Minute}) // for Health
	_, isKnown := c.Staleness()
	fmt.Println(isKnown)
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	staleness, isKnown := c.Staleness() // for a metric
	fmt.Println(isKnown, staleness < time.Minute)
	// Output:
	// false
	// true true
}

func ExampleCache_WaitForStaleness() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cache.New(pods("shop"), nil)
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForStaleness(ctx, time.Minute); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.List("shop", nil)))
	// Output: 1
}

func ExampleIndexByLabel() {
	pod := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web-1", "namespace": "shop", "labels": map[string]any{"app": "web"}}}}
	byApp := cache.IndexByLabel[unstructured.Object]("app")
	fmt.Println(byApp(pod), cache.KeyOf(pod))
	opts := &cache.Options[unstructured.Object]{Indexes: map[string]func(*unstructured.Object) []string{"app": byApp}}
	_ = opts // cache.New(pods, opts).ByIndex("app", "web")
	// Output: [web] shop/web-1
}

func ExampleCache_ByIndex() {
	ctx, cancel := context.WithCancel(context.Background())
	configMaps, closeAll := configMapServer(ctx)
	defer closeAll()
	defer cancel()

	c := cache.New(configMaps, &cache.Options[unstructured.Object]{
		Indexes: map[string]func(*unstructured.Object) []string{"app": cache.IndexByLabel[unstructured.Object]("app")},
	})
	go func() { _ = c.Run(ctx) }()
	settings := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "settings", "labels": map[string]any{"app": "web"}}}}
	stored, err := configMaps.Create(ctx, settings, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := c.WaitForResourceVersion(ctx, stored.GetResourceVersion()); err != nil { // of a handle that is not tracked
		log.Fatal(err)
	}
	found, err := c.ByIndex("app", "web")
	if err != nil {
		log.Fatal(err)
	}
	for _, obj := range found {
		fmt.Println(obj.GetName())
	}
	_, err = c.ByIndex("tier", "front")
	fmt.Println(err)
	// Output:
	// settings
	// cache /api/v1/namespaces/shop/configmaps: unknown index "tier" (add it to Options.Indexes)
}

// An object of a namespace that the cache leaves has a change of type Removed, and not Deleted: it may exist.
func ExampleCache_SetNamespaces() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := cache.New(pods(""), &cache.Options[unstructured.Object]{Namespaces: []string{"shop"}})
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	for change := range c.Changes(ctx) {
		if change.Type != dynamic.Synced {
			fmt.Println(change.Type, change.Object.GetNamespace())
			if change.Type == cache.Removed {
				break
			}
			continue
		}
		if err := c.SetNamespaces(); err != nil { // without an argument the cache becomes empty
			log.Fatal(err)
		}
	}
	// Output:
	// ADDED shop
	// REMOVED shop
}

// A process with a share of the namespaces takes over a second share. Without support of the server, the cache drops the rest itself.
func ExampleCache_SetShard() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	shares := shard.Split(shard.Namespace, 2)
	c := cache.New(pods("shop"), &cache.Options[unstructured.Object]{Shard: shares[1]})
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(shares[0].Matches("shop", ""), len(c.List("", nil)))

	if err := c.SetShard(c.Shard().Union(shares[0])); err != nil {
		log.Fatal(err)
	}
	if err := c.WaitForSync(ctx); err != nil { // for the objects of the gained share
		log.Fatal(err)
	}
	fmt.Println(c.Shard().IsEverything(), len(c.List("", nil)))
	// Output:
	// true 0
	// true 1
}
