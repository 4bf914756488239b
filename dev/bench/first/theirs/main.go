// Command theirs is the smallest program with client-go for listing a resource, or getting an object, by any name accepted by
// kubectl: theirs RESOURCE [NAME].
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, resource string, names []string) error {
	found, err := find(resource)
	if err != nil {
		return err
	}
	for _, name := range names {
		obj, err := found.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, obj.GetKind(), obj.GetName())
	}
	if len(names) > 0 {
		return nil
	}
	list, err := found.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		fmt.Fprintln(os.Stdout, list.Items[i].GetKind(), list.Items[i].GetName())
	}
	return nil
}

// find is client-go's equivalent of anykind's transport.Load, dynamic.Connect and Client.Resource.
func find(resource string) (dynamic.ResourceInterface, error) {
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := loading.Namespace()
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(served)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	gvr, err := mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
	if err != nil {
		return nil, err
	}
	gvk, err := mapper.KindFor(gvr)
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Resource(gvr).Namespace(namespace), nil
	}
	return client.Resource(gvr), nil
}
