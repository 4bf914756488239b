// Command controllerruntime is an observer with an informer of controller-runtime's cache.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/dev/peers/informers"
	"github.com/anykind/anykind/dev/peers/observe"
)

func main() { observe.Main(run) }

func run(ctx context.Context, p *observe.Program) (list func() []observe.Event, block func(), err error) {
	log.SetLogger(logr.Discard())
	config := &rest.Config{Host: p.Server}
	if p.Protobuf {
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{informers.Core, informers.Widgets.GroupVersion()})
	mapper.Add(informers.Core.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(informers.Widgets, meta.RESTScopeNamespace)
	opts := cache.Options{Scheme: informers.Scheme(), Mapper: mapper}
	if p.Resync > 0 {
		opts.SyncPeriod = &p.Resync
	}
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, nil, err
	}
	object, isObject := informers.Object(p).(client.Object)
	if !isObject {
		return nil, nil, fmt.Errorf("%T is not an object of controller-runtime", informers.Object(p))
	}
	found, err := c.GetInformer(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	informer, isShared := found.(toolscache.SharedIndexInformer)
	if !isShared {
		return nil, nil, fmt.Errorf("the informer is a %T", found)
	}
	if err := informer.AddIndexers(toolscache.Indexers{informers.Index: informers.IndexFunc(p)}); err != nil {
		return nil, nil, err
	}
	informers.Handlers(p, func(handler toolscache.ResourceEventHandler, resync time.Duration) {
		_, err = informer.AddEventHandlerWithResyncPeriod(handler, resync)
	})
	go func() { _ = c.Start(ctx) }()
	list, block = informers.Serve(p, informer)
	return list, block, err
}
