//go:build unix

// Command informers is a dynamic informer of client-go for each kind, with an index of owners.
package main

import (
	"context"
	"errors"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/dev/bench/internal/library"
)

const ownerIndex = "owner"

type side struct {
	cfg       *rest.Config
	informers []cache.SharedIndexInformer
}

func main() {
	library.Main(func(kubeconfig string) (library.Library, error) {
		cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, err
		}
		cfg.QPS = -1 // no limit of the client
		cfg.WarningHandler = rest.NoWarnings{}
		return &side{cfg: cfg}, nil
	})
}

func (s *side) Sync(ctx context.Context, seen func(string)) (objects int, err error) {
	resources, err := s.resources()
	if err != nil {
		return 0, err
	}
	client, err := dynamic.NewForConfig(s.cfg)
	if err != nil {
		return 0, err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for gvr := range resources {
		informer := factory.ForResource(gvr).Informer()
		if err := s.prepare(informer, seen); err != nil {
			return 0, err
		}
		s.informers = append(s.informers, informer)
	}
	factory.Start(ctx.Done())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return 0, errors.New("an informer has not synced")
		}
	}
	for _, informer := range s.informers {
		objects += len(informer.GetStore().ListKeys())
	}
	return objects, nil
}

// resources returns the preferred watchable resources, without the second resource of Events and the Endpoints.
func (s *side) resources() (map[schema.GroupVersionResource]struct{}, error) {
	client, err := discovery.NewDiscoveryClientForConfig(s.cfg)
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists))
	delete(resources, schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"})
	delete(resources, schema.GroupVersionResource{Version: "v1", Resource: "endpoints"})
	return resources, err
}

func (s *side) prepare(informer cache.SharedIndexInformer, seen func(string)) error {
	err := informer.AddIndexers(cache.Indexers{ownerIndex: func(obj any) (owners []string, _ error) {
		for _, owner := range obj.(*unstructuredv1.Unstructured).GetOwnerReferences() { //nolint:forcetypeassert // of a dynamic informer
			owners = append(owners, string(owner.UID))
		}
		return owners, nil
	}})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
		seen(obj.(*unstructuredv1.Unstructured).GetAnnotations()[library.Changed]) //nolint:forcetypeassert // of a dynamic informer
	}})
	return err
}

func (s *side) Subtree(root library.Ref) (objects int, err error) {
	for owners := []string{root.UID}; len(owners) > 0; {
		owner := owners[0]
		owners = owners[1:]
		for _, informer := range s.informers {
			owned, err := informer.GetIndexer().ByIndex(ownerIndex, owner)
			if err != nil {
				return 0, err
			}
			for _, obj := range owned {
				objects++
				owners = append(owners, string(obj.(*unstructuredv1.Unstructured).GetUID())) //nolint:forcetypeassert // of a dynamic informer
			}
		}
	}
	return objects, nil
}
