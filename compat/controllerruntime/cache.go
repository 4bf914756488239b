package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/compat/sharedinformer"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/unstructured"
)

// controller-runtime's cache decides which informers exist: it evaluates ByObject, namespaces, selectors and defaults, and reads
// from the informers' indexers. An informer gets these decisions as a ListerWatcher only. Its first request contains them: the
// transport of the cache's HTTP client records the URL of the list instead of sending it. The namespace and the selectors in the
// URL configure an anykind cache.

// NewCache returns a cache, for manager.Options.NewCache; it is a cache.NewCacheFunc. config and Options.HTTPClient are not used,
// and Mapper is anykind's by default. With Options.NewInformer, the cache is controller-runtime's own and uses both.
func (c *Constructors) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if options.Mapper == nil {
		options.Mapper = c.mapper()
	}
	if options.NewInformer != nil {
		return cache.New(config, options)
	}
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	informers := &informerFactory{constructors: c, scheme: options.Scheme, mapper: options.Mapper, byKind: map[kindForm][]*informer{}}
	options.NewInformer = informers.new
	options.HTTPClient = &http.Client{Transport: urlRecorder{}}
	inner, err := cache.New(&rest.Config{Host: "http://localhost", QPS: -1}, options)
	if err != nil {
		return nil, err
	}
	return &informerCache{Cache: inner, informerFactory: informers}, nil
}

// informerCache is controller-runtime's cache over informers of anykind.
type informerCache struct {
	cache.Cache
	*informerFactory
}

// NeedLeaderElection returns false: the cache runs before this process is the leader.
func (c *informerCache) NeedLeaderElection() bool { return false }

// informerFactory makes the informers of a cache.
type informerFactory struct {
	constructors *Constructors
	scheme       *runtime.Scheme
	mapper       meta.RESTMapper

	mu     sync.Mutex
	byKind map[kindForm][]*informer // an informer for each namespace
}

// find returns the informers of a kind that have not been stopped.
func (f *informerFactory) find(of kindForm) (all []*informer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.byKind[of] {
		if !i.IsStopped() {
			all = append(all, i)
		}
	}
	f.byKind[of] = all
	return all
}

func (f *informerFactory) add(i *informer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byKind[i.of] = append(f.byKind[i.of], i)
}

// new returns an informer; it is Options.NewInformer. It cannot return an error: the running informer reports the error.
func (f *informerFactory) new(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	i, err := f.newInformer(lw, obj, resync, indexers)
	if err != nil {
		of := kindForm{obj.GetObjectKind().GroupVersionKind(), formOf(obj)}
		i = newInformer(of, "", &source{failure: err}, &sharedinformer.Config[cached]{ResyncPeriod: resync, Indexers: indexers})
	}
	f.add(i)
	return i
}

func (f *informerFactory) newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) (*informer, error) {
	gvk, err := apiutil.GVKForObject(obj, f.scheme)
	if err != nil {
		return nil, err
	}
	mapping, err := f.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	recorded, err := recordList(f.constructors.ctx, lw)
	if err != nil {
		return nil, err
	}
	resource := f.constructors.client.ForAPIResource(&discovery.Resource{
		GVR: mapping.Resource, GVK: gvk, Namespaced: mapping.Scope.Name() != meta.RESTScopeNameRoot,
	})
	namespace := namespaceOf(recorded.Path, mapping)
	switch {
	case namespace != "":
		resource = resource.Namespace(namespace)
	case mapping.Scope.Name() != meta.RESTScopeNameRoot:
		resource = resource.AllNamespaces()
	}
	src := &source{resource: resource}
	limits := unstructured.Limits(connOf(f.constructors.client).MemoryLimits())
	of := kindForm{gvk, formOf(obj)}
	switch of.form {
	case metadataForm:
		src.resource = resource.Metadata()
		src.decoder = &decoder{newMetadata, gvk, limits}
	case typedForm:
		src.decoder = &decoder{newObject: func() (client.Object, error) {
			fresh, err := f.scheme.New(gvk)
			if err != nil {
				return nil, err
			}
			typed, ok := fresh.(client.Object)
			if !ok {
				return nil, fmt.Errorf("%T is not an object", fresh)
			}
			return typed, nil
		}, limits: limits}
	default:
	}
	query := recorded.Query()
	return newInformer(of, namespace, src, &sharedinformer.Config[cached]{
		LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector"), ResyncPeriod: resync, Indexers: indexers,
		Intern: f.constructors.Intern,
	}), nil
}

// namespaceOf returns the namespace in the path of a list, "" for all namespaces and cluster-scoped resources.
func namespaceOf(path string, mapping *meta.RESTMapping) string {
	rest, found := strings.CutSuffix(path, "/"+mapping.Resource.Resource)
	i := strings.LastIndex(rest, "/namespaces/")
	if !found || i < 0 {
		return ""
	}
	return rest[i+len("/namespaces/"):]
}

var errRecorded = errors.New("the request was recorded")

type recordKey struct{}

// recordList returns the URL of a ListerWatcher's list request.
func recordList(ctx context.Context, lw toolscache.ListerWatcher) (*url.URL, error) {
	var recorded url.URL
	_, err := toolscache.ToListerWatcherWithContext(lw).ListWithContext(context.WithValue(ctx, recordKey{}, &recorded), metav1.ListOptions{})
	if !errors.Is(err, errRecorded) {
		return nil, fmt.Errorf("the request of an informer cannot be made: %w", err)
	}
	return &recorded, nil
}

// urlRecorder is a transport that sends nothing. It records the URLs of recordList's requests.
type urlRecorder struct{}

func (urlRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	recorded, ok := request.Context().Value(recordKey{}).(*url.URL)
	if !ok {
		return nil, fmt.Errorf("%s %s: the cache has no connection of its own", request.Method, request.URL.Path)
	}
	*recorded = *request.URL
	return nil, errRecorded
}
