package clientgo_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// shop is a client of a server with a ConfigMap.
func shop() (client *dynamic.Client, stop func()) {
	const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"settings","uid":"u1","resourceVersion":"3"}}`
	api := scripted.New("/v1 configmaps configmap ConfigMap")
	api.Handle("GET /api/v1/namespaces/shop/configmaps/settings", scripted.JSON(settings))
	api.Handle("WATCH /api/v1/configmaps", scripted.Watch(scripted.Event("ADDED", settings), scripted.InitialEventsEnd("v1", "ConfigMap", "5")))
	server := httptest.NewServer(api)
	client, err := dynamic.Connect(context.Background(), &transport.Config{Server: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close()
		server.Close()
	}
}

// Code that takes a dynamic.Interface of client-go.
func ExampleNewDynamic() {
	client, stop := shop()
	defer stop()
	settings, err := clientgo.NewDynamic(client.Conn()).Resource(configMaps).Namespace("shop").Get(context.Background(), "settings", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.GetName())
	// Output: settings
}

// Code that takes a CachedDiscoveryInterface of client-go.
func ExampleNewDiscovery() {
	client, stop := shop()
	defer stop()
	discovery, err := clientgo.NewDiscovery(context.Background(), client.Conn(), client.Discovery())
	if err != nil {
		log.Fatal(err)
	}
	resources, err := discovery.ServerResourcesForGroupVersion("v1")
	if err != nil {
		log.Fatal(err)
	}
	for _, resource := range resources.APIResources {
		fmt.Println(resource.Name, resource.Kind, resource.Namespaced)
	}
	// Output: configmaps ConfigMap true
}

// Code of cli-runtime, which takes a RESTClientGetter.
func ExampleNewRESTClientGetter() {
	client, stop := shop()
	defer stop()
	getter, err := clientgo.NewRESTClientGetter(context.Background(), client.Conn(), client.Discovery())
	if err != nil {
		log.Fatal(err)
	}
	mapper, err := getter.ToRESTMapper()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mapper.ResourceFor(schema.GroupVersionResource{Resource: "configmap"}))
	// Output: /v1, Resource=configmaps <nil>
}

// The flags of a kubectl plugin. They may be parsed after the call. Discovery and mapping are anykind's.
func ExampleWrapRESTClientGetter() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := httptest.NewServer(scripted.New("apps/v1 deployments deployment Deployment deploy"))
	defer server.Close()
	flags := genericclioptions.NewConfigFlags(false)
	getter := clientgo.WrapRESTClientGetter(ctx, flags, nil)
	*flags.KubeConfig = os.DevNull // flags.AddFlags, in a plugin
	*flags.APIServer = server.URL
	*flags.Namespace = "shop"

	mapper, err := getter.ToRESTMapper()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mapper.ResourceFor(schema.GroupVersionResource{Resource: "deploy"}))
	config, err := getter.ToRESTConfig() // for clientsets: its requests use the same connection
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.Host == server.URL)
	fmt.Println(getter.ToRawKubeConfigLoader().Namespace())
	discovery, err := getter.ToDiscoveryClient()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(discovery.Fresh())
	// Output:
	// apps/v1, Resource=deployments <nil>
	// true
	// shop true <nil>
	// false
}

// Code that takes informers of client-go.
func ExampleNewDynamicSharedInformerFactory() {
	client, stop := shop()
	defer stop()
	factory := clientgo.NewDynamicSharedInformerFactory(client, 0)
	lister := factory.ForResource(configMaps).Lister()
	ended := make(chan struct{})
	factory.Start(ended)
	fmt.Println(factory.WaitForCacheSync(ended)[configMaps])
	settings, err := lister.ByNamespace("shop").Get("settings")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.GetObjectKind().GroupVersionKind().Kind)
	close(ended)
	factory.Shutdown()
	// Output:
	// true
	// ConfigMap
}
