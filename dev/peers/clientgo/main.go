// Command clientgo is an observer with a shared informer of client-go.
package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dev/peers/informers"
	"github.com/anykind/anykind/dev/peers/observe"
)

func main() { observe.Main(run) }

func run(ctx context.Context, p *observe.Program) (list func() []observe.Event, block func(), err error) {
	source, err := listWatch(p) //nolint:contextcheck // early versions of client-go pass none
	if err != nil {
		return nil, nil, err
	}
	informer := cache.NewSharedIndexInformer(source, informers.Object(p), p.Resync, cache.Indexers{informers.Index: informers.IndexFunc(p)})
	informers.Handlers(p, func(handler cache.ResourceEventHandler, resync time.Duration) {
		informer.AddEventHandlerWithResyncPeriod(handler, resync) //nolint:errcheck // early versions return nothing
	})
	go informer.Run(ctx.Done())
	list, block = informers.Serve(p, informer)
	return list, block, nil
}

// listWatch returns the source of an informer: a REST client, as in a generated client, or a dynamic client for widgets.
func listWatch(p *observe.Program) (cache.ListerWatcher, error) {
	if p.Custom {
		client, err := dynamic.NewForConfig(&rest.Config{Host: p.Server})
		if err != nil {
			return nil, err
		}
		return dynamicListWatch(client.Resource(informers.Widgets.GroupVersion().WithResource("widgets"))), nil
	}
	config := &rest.Config{Host: p.Server, APIPath: "/api"}
	config.GroupVersion = &informers.Core
	config.NegotiatedSerializer = serializer.NewCodecFactory(informers.Scheme()).WithoutConversion()
	if p.Protobuf {
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return cache.NewListWatchFromClient(client, "configmaps", metav1.NamespaceAll, fields.Everything()), nil
}
