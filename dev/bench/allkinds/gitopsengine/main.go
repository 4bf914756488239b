//go:build ignore

// Command gitopsengine is the cluster cache of gitops-engine, with the manifests of all objects, as in Argo CD with its options'
// defaults and batches of events.
package main

import (
	"context"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/dev/bench/internal/library"
)

type side struct{ cache cache.ClusterCache }

func main() {
	library.Main(func(kubeconfig string) (library.Library, error) {
		cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, err
		}
		cfg.QPS = -1 // no limit of the client
		cfg.WarningHandler = rest.NoWarnings{}
		return &side{cache.NewClusterCache(cfg,
			cache.SetLogr(logr.Discard()),
			cache.SetBatchEventsProcessing(true),
			cache.SetPopulateResourceInfoHandler(func(obj *unstructuredv1.Unstructured, _ bool) (any, bool) {
				status, _ := health.GetResourceHealth(obj, nil)
				return status, true
			}),
		)}, nil
	})
}

func (s *side) Sync(_ context.Context, seen func(string)) (int, error) {
	if err := s.cache.EnsureSynced(); err != nil {
		return 0, err
	}
	s.cache.OnResourceUpdated(func(newRes, _ *cache.Resource, _ map[kube.ResourceKey]*cache.Resource) {
		if newRes != nil {
			seen(newRes.Resource.GetAnnotations()[library.Changed])
		}
	})
	return s.cache.GetClusterInfo().ResourcesCount, nil
}

func (s *side) Subtree(root library.Ref) (objects int, err error) {
	key := kube.NewResourceKey(root.Group, root.Kind, root.Namespace, root.Name)
	s.cache.IterateHierarchyV2([]kube.ResourceKey{key}, func(*cache.Resource, map[kube.ResourceKey]*cache.Resource) bool {
		objects++
		return true
	})
	return objects - 1, nil // without the root
}
