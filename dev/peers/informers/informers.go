// Package informers connects client-go's informers with an observer. It compiles with client-go 1.16 to 1.37, and has only
// calls with the same signature in all these versions.
package informers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dev/peers/observe"
)

// Index is the name of the index that slows the store down.
const Index = "slow"

// reader is the name of the object blocking IndexFunc.
const reader = "reader"

// Widgets is the custom resource.
var Widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// Object returns an empty object of the observed kind.
func Object(p *observe.Program) runtime.Object {
	if !p.Custom {
		return &ConfigMap{}
	}
	widget := &unstructuredv1.Unstructured{}
	widget.SetGroupVersionKind(Widgets)
	return widget
}

// IndexFunc is the function of the index. It runs in the store of an informer, with the store's lock.
func IndexFunc(p *observe.Program) cache.IndexFunc {
	return func(obj interface{}) ([]string, error) {
		time.Sleep(p.Slow)
		if object, err := meta.Accessor(obj); err == nil && object.GetName() == reader {
			p.Wait()
		}
		return nil, nil
	}
}

// Handlers adds the handlers to an informer.
func Handlers(p *observe.Program, add func(handler cache.ResourceEventHandler, resync time.Duration)) {
	add(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj interface{}) { emit(p, observe.Added, obj) },
		UpdateFunc: func(_, obj interface{}) { emit(p, observe.Modified, obj) },
		DeleteFunc: func(obj interface{}) { emit(p, observe.Deleted, obj) },
	}, 0)
	if p.Resync > 0 {
		add(cache.ResourceEventHandlerFuncs{}, p.Resync)
	}
}

// Serve emits Synced, and returns the functions for the commands.
func Serve(p *observe.Program, informer cache.SharedIndexInformer) (list func() []observe.Event, block func()) {
	go func() {
		for !informer.HasSynced() {
			time.Sleep(10 * time.Millisecond)
		}
		p.Emit(observe.Event{Kind: observe.Synced})
	}()
	list = func() (events []observe.Event) {
		for _, obj := range informer.GetStore().List() {
			events = append(events, event(observe.Read, obj))
		}
		return events
	}
	return list, func() {
		object := &ConfigMap{}
		object.Name = reader
		_, _ = informer.GetIndexer().Index(Index, object)
	}
}

func emit(p *observe.Program, kind string, obj interface{}) {
	if tombstone, isUnknown := obj.(cache.DeletedFinalStateUnknown); isUnknown {
		kind = observe.DeletedUnknown
		obj = tombstone.Obj
	}
	p.Emit(event(kind, obj))
}

func event(kind string, obj interface{}) observe.Event {
	object, err := meta.Accessor(obj)
	if err != nil {
		return observe.Event{Kind: kind}
	}
	return observe.Event{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()), Version: object.GetResourceVersion(),
	}
}
