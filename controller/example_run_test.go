package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	exampleWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"shop","name":"web","uid":"u1","resourceVersion":"3"}}`
	// exampleConfigMap is a ConfigMap that the Widget owns.
	exampleConfigMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web-config","uid":"u2","resourceVersion":"4",` +
		`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget","name":"web","uid":"u1","controller":true}]}}`
	// exampleSecret is a Secret with a label that names the Widget.
	exampleSecret = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"login","uid":"u3","resourceVersion":"5","labels":{"widget":"web"}}}`
)

// runCaches runs caches of a server with objects until stop is called.
func runCaches(objects ...string) (widgets *dynamic.Resource, ofWidgets, ofConfigMaps, ofSecrets *cache.Cache[unstructured.Object], stop func()) {
	server := scripted.New("example.com/v1 widgets widget Widget\n/v1 configmaps configmap ConfigMap\n/v1 secrets secret Secret")
	for path, kind := range map[string]string{"/apis/example.com/v1/widgets": "Widget", "/api/v1/configmaps": "ConfigMap", "/api/v1/secrets": "Secret"} {
		var events []string
		for _, object := range objects {
			if strings.Contains(object, `"kind":"`+kind+`","metadata"`) {
				events = append(events, scripted.Event("ADDED", object))
			}
		}
		server.Handle("WATCH "+path, scripted.Watch(append(events, scripted.InitialEventsEnd("v1", kind, "5"))...))
	}
	listener := httptest.NewServer(server)
	ctx, cancel := context.WithCancel(context.Background())
	client, err := dynamic.Connect(ctx, &transport.Config{Server: listener.URL})
	if err != nil {
		log.Fatal(err)
	}
	var caches []*cache.Cache[unstructured.Object]
	ended := make(chan error, 3)
	for _, name := range []string{"widgets", "configmaps", "secrets"} {
		resource, err := client.Resource(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		c := cache.New(resource.AllNamespaces(), nil)
		go func() { ended <- c.Run(ctx) }()
		caches = append(caches, c)
	}
	if widgets, err = client.Resource(ctx, "widgets"); err != nil {
		log.Fatal(err)
	}
	return widgets, caches[0], caches[1], caches[2], func() {
		cancel()
		for range caches {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				log.Fatal(err)
			}
		}
		client.Close()
		listener.Close()
	}
}

func ExampleRun() {
	_, ofWidgets, _, _, stop := runCaches(exampleWidget)
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	reconcile := func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		calls++
		_, found := ofWidgets.Get(key.Namespace, key.Name)
		fmt.Println("reconcile", key, "found:", found)
		if calls == 1 {
			return time.Millisecond, nil // again, even without a change
		}
		cancel() // a program ends with its signals
		return 0, nil
	}
	err := controller.Run(ctx, ofWidgets, reconcile, nil)
	fmt.Println(err)
	// Output:
	// reconcile shop/web found: true
	// reconcile shop/web found: true
	// context canceled
}

// A change of a ConfigMap reconciles the Widget that is its controller, even before the cache of Widgets has that Widget.
func ExampleOwns() {
	widgets, ofWidgets, ofConfigMaps, _, stop := runCaches(exampleConfigMap)
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	reconcile := func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		_, found := ofWidgets.Get(key.Namespace, key.Name)
		fmt.Println("reconcile", key, "found:", found)
		cancel()
		return 0, nil
	}
	err := controller.Run(ctx, ofWidgets, reconcile, &controller.Options{
		Triggers: []controller.Trigger{controller.Owns(ofConfigMaps, widgets)},
	})
	fmt.Println(err)
	// Output:
	// reconcile shop/web found: false
	// context canceled
}

// A change of a Secret reconciles the Widget of its label. The predicate ignores updates that leave the labels as they are.
func ExampleWatches() {
	_, ofWidgets, _, ofSecrets, stop := runCaches(exampleSecret)
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	reconcile := func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		fmt.Println("reconcile", key)
		cancel()
		return 0, nil
	}
	widgetOf := func(secret *unstructured.Object) []types.NamespacedName {
		name, isLabelled := secret.GetLabels()["widget"]
		if !isLabelled {
			return nil
		}
		return []types.NamespacedName{{Namespace: secret.GetNamespace(), Name: name}}
	}
	err := controller.Run(ctx, ofWidgets, reconcile, &controller.Options{
		Triggers: []controller.Trigger{controller.Watches(ofSecrets, widgetOf, controller.LabelChanged)},
	})
	fmt.Println(err)
	// Output:
	// reconcile shop/web
	// context canceled
}
