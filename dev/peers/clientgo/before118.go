//go:build before118

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Requests of these versions have no context.

func dynamicListWatch(resource dynamic.ResourceInterface) cache.ListerWatcher {
	return &cache.ListWatch{
		ListFunc:  func(opts metav1.ListOptions) (runtime.Object, error) { return resource.List(opts) },
		WatchFunc: func(opts metav1.ListOptions) (watch.Interface, error) { return resource.Watch(opts) },
	}
}
