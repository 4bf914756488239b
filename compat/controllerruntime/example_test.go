package controllerruntime_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// shop is a server with a ConfigMap.
func shop() *httptest.Server {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	server.Handle("GET /api/v1/namespaces/shop/configmaps/settings", scripted.JSON(
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"}, "data": {"color": "red"}}`))
	return httptest.NewServer(server)
}

// A client of controller-runtime over a dynamic.Client. The configuration of a manager is that of package manager.
func ExampleNew() {
	ctx := context.Background()
	server := shop()
	defer server.Close()
	anykind, err := dynamic.Connect(ctx, &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer anykind.Close()
	from := controllerruntime.New(ctx, anykind)
	c, err := from.NewClient(from.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var settings corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "settings"}, &settings); err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Data)
	// Output: map[color:red]
}

// The same with the rest.Config of a program.
func ExampleFromConfig() {
	ctx := context.Background()
	server := shop()
	defer server.Close()
	from, err := controllerruntime.FromConfig(ctx, &rest.Config{Host: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	c, err := from.NewClient(from.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var settings corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "settings"}, &settings); err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Data)
	// Output: map[color:red]
}
