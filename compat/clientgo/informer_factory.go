package clientgo

import (
	"cmp"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/compat/sharedinformer"
	"github.com/anykind/anykind/dynamic"
)

// NewDynamicSharedInformerFactory returns client-go's factory of dynamic informers over package cache: see
// [NewFilteredDynamicSharedInformerFactory].
func NewDynamicSharedInformerFactory(client *dynamic.Client, resync time.Duration) dynamicinformer.DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, resync, nil)
}

// NewFilteredDynamicSharedInformerFactory returns client-go's factory of dynamic informers over package cache: see
// [NewDynamicSharedInformerFactoryWithOptions] and the fields of [InformerFactoryOptions].
func NewFilteredDynamicSharedInformerFactory(
	client *dynamic.Client, resync time.Duration, namespace string, tweak dynamicinformer.TweakListOptionsFunc,
) dynamicinformer.DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, resync, &InformerFactoryOptions{Namespace: namespace, TweakListOptions: tweak})
}

// InformerFactoryOptions configure the informers of a factory. nil and zero values mean all objects.
type InformerFactoryOptions struct {
	// Namespace restricts the cached objects to one namespace; metav1.NamespaceAll means all.
	Namespace string
	// TweakListOptions sets the selectors. Its other changes have no effect.
	TweakListOptions dynamicinformer.TweakListOptionsFunc
	// Intern shares equal maps and slices between objects and between versions of one object. It saves memory and time. Stored
	// objects must not be changed, in client-go, too; with Intern such a write also changes objects with the same parts. Under go
	// test an interning informer compares a sample of its objects and panics after such a write.
	Intern bool
}

// NewDynamicSharedInformerFactoryWithOptions returns client-go's factory of dynamic informers. Its informers are caches of
// package cache, whose streams recover like dynamic.Handle.Follow.
//
// What differs from client-go: a slow handler gets the latest state of each object instead of all states in between. Indexers
// added to a running informer are computed at each read. The store cannot be written. A transform returns an
// *unstructured.Unstructured.
//
// As in client-go, readers and handlers get the stored objects and must not change them. Unless Intern is set, a write lasts
// until the object's next version and affects only this object. Indexes keep their values. With
// KUBE_CACHE_MUTATION_DETECTOR=true, Run panics after a write.
func NewDynamicSharedInformerFactoryWithOptions(
	client *dynamic.Client, resync time.Duration, opts *InformerFactoryOptions,
) dynamicinformer.DynamicSharedInformerFactory {
	return &informerFactory{
		client: client, resync: resync, opts: *cmp.Or(opts, &InformerFactoryOptions{}),
		informers: map[schema.GroupVersionResource]*genericInformer{},
	}
}

// informerFactory implements dynamicinformer.DynamicSharedInformerFactory.
type informerFactory struct {
	client *dynamic.Client
	resync time.Duration
	opts   InformerFactoryOptions

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
	if f.opts.Namespace != "" {
		resource = resource.Namespace(f.opts.Namespace)
	}
	var selectors metav1.ListOptions
	if f.opts.TweakListOptions != nil {
		f.opts.TweakListOptions(&selectors)
	}
	created := &genericInformer{gvr: gvr, informer: newInformer(&sharedinformer.Config[object]{
		Name: gvr.String(), Source: resource, LabelSelector: selectors.LabelSelector, FieldSelector: selectors.FieldSelector,
		ResyncPeriod: f.resync, Intern: f.opts.Intern,
	})}
	f.informers[gvr] = created
	return created
}

type (
	object   = unstructuredv1.Unstructured
	informer = sharedinformer.Informer[object, *object]
)

// newInformer returns an informer. It sets the indexers, Export and Import of config.
func newInformer(config *sharedinformer.Config[object]) *informer {
	config.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	config.Export = func(obj *object) any { return obj }
	config.Import = func(obj any) (*object, bool) {
		own, ok := obj.(*object)
		return own, ok
	}
	return sharedinformer.New[object, *object](config)
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
	started  bool // guarded by the factory's mu
}

// Informer implements informers.GenericInformer.
func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

// Lister implements informers.GenericInformer.
func (g *genericInformer) Lister() cache.GenericLister {
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(g.informer.GetIndexer(), g.gvr))
}
