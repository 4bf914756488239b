//go:build !before118

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dev/peers/informers"
	"github.com/anykind/anykind/dev/peers/observe"
)

// dynamicListWatch returns the source of widgets: a dynamic client, as in a dynamic informer.
func dynamicListWatch(p *observe.Program) (cache.ListerWatcher, error) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: p.Server})
	if err != nil {
		return nil, err
	}
	widgets := client.Resource(informers.Widgets.GroupVersion().WithResource("widgets"))
	ctx := context.Background()
	return &cache.ListWatch{
		ListFunc:  func(opts metav1.ListOptions) (runtime.Object, error) { return widgets.List(ctx, opts) },   //nolint:staticcheck // early versions have no other
		WatchFunc: func(opts metav1.ListOptions) (watch.Interface, error) { return widgets.Watch(ctx, opts) }, //nolint:staticcheck // early versions have no other
	}, nil
}
