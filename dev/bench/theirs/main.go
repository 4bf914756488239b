//go:build unix

// Command theirs runs a task of the comparison with client-go.
package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// side is the pods of a namespace, accessed by client-go's dynamic client.
type side struct {
	config    *rest.Config
	client    dynamic.Interface
	namespace string
	pods      dynamic.ResourceInterface
}

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func main() { measure.Main(prepare) }

func prepare(ctx context.Context, s *measure.Settings) (map[string]measure.Task, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the default of 5 requests a second would dominate the result
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	theirs := &side{config: config, client: client, namespace: s.Namespace, pods: client.Resource(podsResource).Namespace(s.Namespace)}
	if _, err := theirs.pods.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, err
	}
	return map[string]measure.Task{
		"list": theirs.list, "pager": theirs.pager, "pager-typed": theirs.pagerTyped, "lazy": theirs.lazy, "iterate": theirs.iterate,
		"watch": theirs.watch, "watch-10": theirs.watchLive(10), "watch-100": theirs.watchLive(100),
		"watch-typed-10": theirs.watchLiveTyped(10), "watch-typed-100": theirs.watchLiveTyped(100), "calls": theirs.calls,
		"gets": theirs.gets, "gets-typed": theirs.getsTyped, "applies": theirs.applies, "applies-typed": theirs.appliesTyped,
		"cache": theirs.cache, "cache-typed": theirs.cacheTyped, "cache-stripped": theirs.cacheTypedStripped,
		"cache-metadata": theirs.cacheMetadata, "cache-index": theirs.cacheIndex,
		"cache-event": theirs.cacheEvent, "cache-event-typed": theirs.cacheEventTyped, "cache-minute": theirs.cacheEvent,
		"cache-churn": theirs.churn, "cache-churn-typed": theirs.churnTyped,
		"custom": theirs.custom, "mixed": theirs.mixed, "mixed-typed": theirs.mixedTyped,
	}, nil
}
