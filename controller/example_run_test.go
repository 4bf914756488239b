package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// widgetsAndSecrets are caches of a server with the Widget web, its ConfigMap, and a Secret that names it. run runs them.
func widgetsAndSecrets() (widgets *dynamic.Resource, ofWidgets, ofConfigMaps, ofSecrets *cache.Cache[unstructured.Object], stop func()) {
	server := scripted.New("example.com/v1 widgets widget Widget\n/v1 configmaps configmap ConfigMap\n/v1 secrets secret Secret")
	for resource, object := range map[string]string{
		"/apis/example.com/v1/widgets": `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"shop","name":"web","uid":"u1","resourceVersion":"3"}}`,
		"/api/v1/configmaps": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web-config","uid":"u2","resourceVersion":"4",
			"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget","name":"web","uid":"u1","controller":true}]}}`,
		"/api/v1/secrets": `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"login","uid":"u3","resourceVersion":"5","labels":{"widget":"web"}}}`,
	} {
		object, err := unstructured.Decode([]byte(object))
		if err != nil {
			log.Fatal(err)
		}
		text, err := unstructured.Encode(object)
		if err != nil {
			log.Fatal(err)
		}
		server.Handle("WATCH "+resource, scripted.Watch(scripted.Event("ADDED", string(text)), scripted.InitialEventsEnd(object.GetAPIVersion(), object.GetKind(), "5")))
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
	widgets, ofWidgets, ofConfigMaps, ofSecrets, stop := widgetsAndSecrets()
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	reconcile := func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		_, found := ofWidgets.Get(key.Namespace, key.Name)
		fmt.Println("reconcile", key, "found:", found)
		cancel() // a program ends with its signals
		return 0, nil
	}
	err := controller.Run(ctx, ofWidgets, reconcile, &controller.Options{Triggers: []controller.Trigger{
		controller.Owns(ofConfigMaps, widgets), // a changed ConfigMap reconciles the Widget that owns it
		controller.Watches(ofSecrets, func(secret *unstructured.Object) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: secret.GetNamespace(), Name: secret.GetLabels()["widget"]}}
		}),
	}})
	fmt.Println(err)
	// Output:
	// reconcile shop/web found: true
	// context canceled
}
