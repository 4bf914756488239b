package controllerruntime

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// cachingClient is a client.Client. With a cache, it reads objects from the cache, except for uncached kinds and, by default,
// unstructured objects.
type cachingClient struct {
	api               *apiClient
	cache             client.Reader // nil: no cache
	cacheUnstructured bool
	uncached          map[schema.GroupVersionKind]bool
}

// newClient returns a client, and this client wrapped as options require.
func (c *Constructors) newClient(config *rest.Config, options client.Options) (*cachingClient, client.Client, error) {
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	if options.Mapper == nil {
		options.Mapper = c.mapper()
	}
	base := &cachingClient{api: newAPIClient(connOf(c.client), options.Scheme, options.Mapper, warningHandler(config))}
	var wrapped client.Client = base
	if options.Cache != nil && options.Cache.Reader != nil {
		base.cache = options.Cache.Reader
		base.cacheUnstructured = options.Cache.Unstructured
		base.uncached = map[schema.GroupVersionKind]bool{}
		for _, obj := range options.Cache.DisableFor {
			gvk, err := base.GroupVersionKindFor(obj)
			if err != nil {
				return nil, nil, err
			}
			base.uncached[gvk] = true
		}
		if enabled := options.Cache.EnableReadYourWritesConsistency; enabled != nil && *enabled {
			informers, ok := options.Cache.Reader.(*informerCache)
			if !ok {
				return nil, nil, fmt.Errorf("read-your-writes consistency: the cache is a %T, not one of NewCache", options.Cache.Reader)
			}
			wrapped = &consistentClient{cachingClient: base, informers: informers, inFlight: &inFlightWrites{}}
		}
	}
	if options.DryRun != nil && *options.DryRun {
		wrapped = client.NewDryRunClient(wrapped)
	}
	if options.FieldOwner != "" {
		wrapped = client.WithFieldOwner(wrapped, options.FieldOwner)
	}
	if options.FieldValidation != "" {
		wrapped = client.WithFieldValidation(wrapped, client.FieldValidation(options.FieldValidation))
	}
	return base, wrapped, nil
}

func (c *cachingClient) Scheme() *runtime.Scheme     { return c.api.scheme }
func (c *cachingClient) RESTMapper() meta.RESTMapper { return c.api.mapper }

func (c *cachingClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.api.scheme)
}

func (c *cachingClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.api.scheme, c.api.mapper)
}

// isCached reports whether obj, an object or a list, is read from the cache.
func (c *cachingClient) isCached(obj runtime.Object) (bool, error) {
	if c.cache == nil {
		return false, nil
	}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return false, err
	}
	if meta.IsListType(obj) {
		gvk = itemKind(gvk)
	}
	if c.uncached[gvk] {
		return false, nil
	}
	return c.cacheUnstructured || formOf(obj) != unstructuredForm, nil
}

// Get implements client.Reader.
func (c *cachingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	cached, err := c.isCached(obj)
	switch {
	case err != nil:
		return err
	case cached:
		return c.cache.Get(ctx, key, obj, opts...)
	}
	options := (&client.GetOptions{}).ApplyOptions(opts)
	return c.api.get(ctx, obj, target{namespace: key.Namespace, name: key.Name}, obj, options.AsGetOptions())
}

// List implements client.Reader.
func (c *cachingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	cached, err := c.isCached(list)
	switch {
	case err != nil:
		return err
	case cached:
		return c.cache.List(ctx, list, opts...)
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	return c.api.list(ctx, list, options.Namespace, options.AsListOptions())
}

// Create implements client.Writer.
func (c *cachingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if formOf(obj) == metadataForm {
		return fmt.Errorf("create %s: the object has metadata only", obj.GetName())
	}
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	return c.api.create(ctx, obj, target{namespace: obj.GetNamespace(), collection: true}, obj, options.AsCreateOptions())
}

// Update implements client.Writer.
func (c *cachingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if formOf(obj) == metadataForm {
		return fmt.Errorf("update %s: the object has metadata only (patch it)", obj.GetName())
	}
	defer restoreKind(obj)()
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.api.update(ctx, obj, targetOf(obj, ""), obj, options.AsUpdateOptions())
}

// Patch implements client.Writer.
func (c *cachingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	defer restoreKind(obj)()
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.api.patch(ctx, obj, targetOf(obj, ""), patch.Type(), data, obj, options.AsPatchOptions())
}

// Apply implements client.Writer.
func (c *cachingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	return c.api.apply(ctx, obj, obj, "", options.AsPatchOptions())
}

// Delete implements client.Writer.
func (c *cachingClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	_, err := c.delete(ctx, obj, opts...)
	return err
}

func (c *cachingClient) delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) (*deleteResponse, error) {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	return c.api.delete(ctx, obj, targetOf(obj, ""), nil, options.AsDeleteOptions())
}

// DeleteAllOf implements client.Writer.
func (c *cachingClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	collection := target{namespace: options.Namespace, collection: true}
	_, err := c.api.delete(ctx, obj, collection, options.AsListOptions(), options.AsDeleteOptions())
	return err
}

// Status implements client.StatusClient.
func (c *cachingClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *cachingClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{api: c.api, name: name}
}

// form is the representation of an object or a list.
type form int

const (
	typedForm form = iota
	unstructuredForm
	metadataForm
)

func formOf(obj any) form {
	switch obj.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataForm
	default:
		return typedForm
	}
}

// restoreKind returns a function that restores the object's present kind, unless the kind is empty. Decoding a response into a
// typed object clears the kind.
func restoreKind(obj runtime.Object) func() {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return func() {
		if !gvk.Empty() {
			obj.GetObjectKind().SetGroupVersionKind(gvk)
		}
	}
}
