//go:build unix

// Command theirs keeps the soak's informers with client-go's dynamic client.
package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/dev/bench/internal/soak"
)

func main() { soak.Main(start) }

type side struct {
	informers map[string]cache.SharedIndexInformer
	events    atomic.Int64
	cancel    context.CancelFunc
	all       sync.WaitGroup
}

func start(ctx context.Context, config *soak.Config) (soak.Side, error) {
	loaded, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	loaded.QPS = -1 // the default of 5 requests a second would delay every start
	loaded.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(loaded)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &side{informers: map[string]cache.SharedIndexInformer{}, cancel: cancel}
	for _, source := range config.Sources {
		informer := dynamicinformer.NewFilteredDynamicInformer(client,
			schema.GroupVersionResource{Group: source.Group, Version: source.Version, Resource: source.Resource}, source.Namespace, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			func(options *metav1.ListOptions) { options.LabelSelector = source.LabelSelector }).Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { s.events.Add(1) },
			UpdateFunc: func(any, any) { s.events.Add(1) },
			DeleteFunc: func(any) { s.events.Add(1) },
		})
		if err != nil {
			s.Stop()
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		s.informers[source.String()] = informer
		s.all.Go(func() { informer.RunWithContext(ctx) })
	}
	return s, nil
}

func (s *side) Versions() soak.Versions {
	all := soak.Versions{}
	for name, informer := range s.informers {
		versions := map[string]string{}
		for _, item := range informer.GetStore().List() {
			if object, ok := item.(*unstructuredv1.Unstructured); ok {
				versions[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
			}
		}
		all[name] = versions
	}
	return all
}

func (s *side) Count() (count int, events int64, trouble error) {
	for _, informer := range s.informers {
		count += len(informer.GetStore().ListKeys())
	}
	return count, s.events.Load(), nil
}

func (s *side) Stop() {
	s.cancel()
	s.all.Wait()
	s.informers = nil
}
