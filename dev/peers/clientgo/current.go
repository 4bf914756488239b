//go:build !before118

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// dynamicListWatch returns the source of an informer over a dynamic client, as in a dynamic informer.
func dynamicListWatch(resource dynamic.ResourceInterface) cache.ListerWatcher {
	ctx := context.Background()
	return &cache.ListWatch{
		ListFunc:  func(opts metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, opts) },   //nolint:staticcheck // early versions have no other
		WatchFunc: func(opts metav1.ListOptions) (watch.Interface, error) { return resource.Watch(ctx, opts) }, //nolint:staticcheck // early versions have no other
	}
}
