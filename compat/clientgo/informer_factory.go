package clientgo

import (
	"sync"
	"time"

	"github.com/anykind/anykind/compat/sharedinformer"
	"github.com/anykind/anykind/dynamic"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// NewDynamicSharedInformerFactory returns client-go's factory of dynamic informers over package cache: see
// [NewFilteredDynamicSharedInformerFactory].
func NewDynamicSharedInformerFactory(client *dynamic.Client, resync time.Duration) dynamicinformer.DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, resync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns client-go's factory of dynamic informers, whose informers are caches of package
// cache: equal parts of objects are held once, and the stream recovers as dynamic.Resource.Follow does. namespace is
// metav1.NamespaceAll or the one whose objects are cached. tweak, if not nil, sets the selectors; its other changes have
// no effect.
//
// What differs from client-go: a handler that lags gets the latest state of each object instead of all in between. Indexers that
// are added once an informer runs are computed at each read. The store cannot be written. A transform returns an
// *unstructured.Unstructured. As with client-go, objects are shared and must not be changed.
func NewFilteredDynamicSharedInformerFactory(
	client *dynamic.Client, resync time.Duration, namespace string, tweak dynamicinformer.TweakListOptionsFunc,
) dynamicinformer.DynamicSharedInformerFactory {
	return &informerFactory{
		client: client, resync: resync, namespace: namespace, tweak: tweak,
		informers: map[schema.GroupVersionResource]*genericInformer{},
	}
}

// informerFactory implements dynamicinformer.DynamicSharedInformerFactory.
type informerFactory struct {
	client    *dynamic.Client
	resync    time.Duration
	namespace string
	tweak     dynamicinformer.TweakListOptionsFunc

	mu           sync.Mutex
	informers    map[schema.GroupVersionResource]*genericInformer
	shuttingDown bool
	running      sync.WaitGroup
}

// ForResource implements dynamicinformer.DynamicSharedInformerFactory.
func (f *informerFactory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, found := f.informers[gvr]; found {
		return known
	}
	resource := f.client.ForGVR(gvr)
	if f.namespace != "" {
		resource = resource.Namespace(f.namespace)
	}
	var options metav1.ListOptions
	if f.tweak != nil {
		f.tweak(&options)
	}
	created := &genericInformer{gvr: gvr, informer: newInformer(resource, gvr.String(), f.resync, &options)}
	f.informers[gvr] = created
	return created
}

type (
	object   = unstructured.Unstructured
	informer = sharedinformer.Informer[object, *object]
)

func newInformer(resource *dynamic.Resource, name string, resync time.Duration, selectors *metav1.ListOptions) *informer {
	return sharedinformer.New[object, *object](&sharedinformer.Config[object]{
		Name: name, Source: resource, LabelSelector: selectors.LabelSelector, FieldSelector: selectors.FieldSelector,
		ResyncPeriod: resync, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		Export: func(obj *object) any { return obj },
		Import: func(obj any) (*object, bool) {
			own, ok := obj.(*object)
			return own, ok
		},
	})
}

// Start implements dynamicinformer.DynamicSharedInformerFactory.
func (f *informerFactory) Start(stop <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shuttingDown {
		return
	}
	for _, generic := range f.informers {
		if !generic.started {
			generic.started = true
			f.running.Go(func() { generic.informer.Run(stop) })
		}
	}
}

// WaitForCacheSync implements dynamicinformer.DynamicSharedInformerFactory.
func (f *informerFactory) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	f.mu.Lock()
	started := map[schema.GroupVersionResource]*informer{}
	for gvr, generic := range f.informers {
		if generic.started {
			started[gvr] = generic.informer
		}
	}
	f.mu.Unlock()
	synced := map[schema.GroupVersionResource]bool{}
	for gvr, own := range started {
		select {
		case <-own.Synced():
			synced[gvr] = true
		case <-stop:
			synced[gvr] = own.HasSynced()
		}
	}
	return synced
}

// Shutdown implements dynamicinformer.DynamicSharedInformerFactory.
func (f *informerFactory) Shutdown() {
	f.mu.Lock()
	f.shuttingDown = true
	f.mu.Unlock()
	f.running.Wait()
}

// genericInformer implements informers.GenericInformer.
type genericInformer struct {
	gvr      schema.GroupVersionResource
	informer *informer
	started  bool // with the factory's mutex
}

// Informer implements informers.GenericInformer.
func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

// Lister implements informers.GenericInformer.
func (g *genericInformer) Lister() cache.GenericLister {
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(g.informer.GetIndexer(), g.gvr))
}
