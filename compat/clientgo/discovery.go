package clientgo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clientgo "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi"
	cachedopenapi "k8s.io/client-go/openapi/cached"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/transport"
)

// CachedDiscovery implements client-go's discovery interfaces over a discovery client. The snapshot of the discovery client is
// the cache: groups and resources come from the latest snapshot, and discovery.Client.Run keeps it current. The server's version
// and the OpenAPI documents are requested over the same connection, the documents by client-go. The caller may change the
// returned lists. CachedDiscovery is safe for concurrent use.
//
// As in client-go, the resources of an unreadable or stale group version are left out. ServerGroupsAndResources and
// ServerPreferredResources report the version in a *discovery.ErrGroupDiscoveryFailed.
type CachedDiscovery struct {
	ctx    context.Context //nolint:containedctx // client-go's interface has methods without a context
	client *discovery.Client
	*delegate

	mu sync.Mutex
	// invalid: the next call requests a snapshot. fresh: a snapshot was requested after the last Invalidate.
	invalid, fresh bool
	invalidations  int // calls of Invalidate
	openAPI        openapi.Client
}

// delegate implements OpenAPIV3WithContext and WithLegacyWithContext of client-go 0.37's interfaces. Older versions of client-go
// lack the result types of these methods.
type delegate = clientgo.DiscoveryClient

var (
	_ clientgo.CachedDiscoveryInterface     = (*CachedDiscovery)(nil)
	_ clientgo.AggregatedDiscoveryInterface = (*CachedDiscovery)(nil)
)

// NewDiscovery returns client-go's discovery over a discovery client and its connection. Methods without a context use ctx.
func NewDiscovery(ctx context.Context, conn *transport.Conn, client *discovery.Client) (*CachedDiscovery, error) {
	delegate, err := clientgo.NewDiscoveryClientForConfig(restconfig.FromConn(conn))
	if err != nil {
		return nil, err
	}
	return &CachedDiscovery{ctx: ctx, client: client, delegate: delegate}, nil
}

// snapshot returns the current snapshot and requests it from the server after an Invalidate.
func (d *CachedDiscovery) snapshot(ctx context.Context) (*discovery.Snapshot, error) {
	d.mu.Lock()
	refresh := d.invalid
	invalidations := d.invalidations
	d.mu.Unlock()
	if !refresh {
		isFirst := d.client.Latest() == nil
		snapshot, err := d.client.Snapshot(ctx)
		if err == nil && isFirst {
			d.mu.Lock()
			d.fresh = d.fresh || !d.invalid
			d.mu.Unlock()
		}
		return snapshot, clientGoError(err)
	}
	snapshot, err := d.client.Refresh(ctx)
	if err == nil {
		d.mu.Lock()
		if d.invalidations == invalidations { // a later Invalidate needs a later request
			d.invalid = false
			d.fresh = true
		}
		d.mu.Unlock()
	}
	return snapshot, clientGoError(err)
}

// Fresh reports whether this value requested the resources, since the last Invalidate if there was an Invalidate. If not, a
// resource that is not found may be found after an Invalidate.
func (d *CachedDiscovery) Fresh() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fresh && !d.invalid
}

// FreshWithContext is Fresh.
func (d *CachedDiscovery) FreshWithContext(context.Context) bool { return d.Fresh() }

// Invalidate makes the next call request the resources from the server.
func (d *CachedDiscovery) Invalidate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.invalid = true
	d.invalidations++
	d.fresh = false
	d.openAPI = nil
}

// InvalidateWithContext is Invalidate.
func (d *CachedDiscovery) InvalidateWithContext(context.Context) { d.Invalidate() }

// GroupsAndMaybeResources returns all groups, resources, and errors of group versions.
func (d *CachedDiscovery) GroupsAndMaybeResources() (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	return d.GroupsAndMaybeResourcesWithContext(d.ctx)
}

// GroupsAndMaybeResourcesWithContext is GroupsAndMaybeResources with a context.
func (d *CachedDiscovery) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	snapshot, err := d.snapshot(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	groups, resources, failed := convert(snapshot)
	return groups, resources, failed, nil
}

// ServerGroups returns the groups, including the core group with its empty name.
func (d *CachedDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	return d.ServerGroupsWithContext(d.ctx)
}

// ServerGroupsWithContext is ServerGroups with a context.
func (d *CachedDiscovery) ServerGroupsWithContext(ctx context.Context) (*metav1.APIGroupList, error) {
	groups, _, _, err := d.GroupsAndMaybeResourcesWithContext(ctx)
	return groups, err
}

// ServerResourcesForGroupVersion returns the resources of a group version. The error is client-go's memory.ErrCacheNotFound for a
// version that is not served, and the cause for an unreadable version.
func (d *CachedDiscovery) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	return d.ServerResourcesForGroupVersionWithContext(d.ctx, groupVersion)
}

// ServerResourcesForGroupVersionWithContext is ServerResourcesForGroupVersion with a context.
func (d *CachedDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return nil, err
	}
	_, resources, failed, err := d.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, err
	}
	if list, found := resources[gv]; found {
		return list, nil
	}
	if err := failed[gv]; err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("group version %s: %w", groupVersion, memory.ErrCacheNotFound)
}

// ServerGroupsAndResources returns the groups and the resources of all group versions.
func (d *CachedDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return d.ServerGroupsAndResourcesWithContext(d.ctx)
}

// ServerGroupsAndResourcesWithContext is ServerGroupsAndResources with a context.
func (d *CachedDiscovery) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, resources, failed, err := d.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := make([]*metav1.APIGroup, len(groups.Groups))
	for i := range groups.Groups {
		all[i] = &groups.Groups[i]
	}
	return all, slices.Collect(maps.Values(resources)), discoveryFailure(failed)
}

// ServerPreferredResources returns each resource in the server's preferred version.
func (d *CachedDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return d.ServerPreferredResourcesWithContext(d.ctx)
}

// ServerPreferredResourcesWithContext is ServerPreferredResources with a context.
func (d *CachedDiscovery) ServerPreferredResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error) {
	groups, resources, failed, err := d.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, err
	}
	var preferred []*metav1.APIResourceList
	for i := range groups.Groups {
		preferred = append(preferred, preferredResources(&groups.Groups[i], resources)...)
	}
	return preferred, discoveryFailure(failed)
}

// ServerPreferredNamespacedResources returns the namespaced resources of ServerPreferredResources.
func (d *CachedDiscovery) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return d.ServerPreferredNamespacedResourcesWithContext(d.ctx)
}

// ServerPreferredNamespacedResourcesWithContext is ServerPreferredNamespacedResources with a context.
func (d *CachedDiscovery) ServerPreferredNamespacedResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error) {
	all, err := d.ServerPreferredResourcesWithContext(ctx)
	namespaced := func(_ string, r *metav1.APIResource) bool { return r.Namespaced }
	return clientgo.FilteredBy(clientgo.ResourcePredicateFunc(namespaced), all), err
}

// ServerVersion requests the server's version.
func (d *CachedDiscovery) ServerVersion() (*version.Info, error) {
	return d.ServerVersionWithContext(d.ctx)
}

// ServerVersionWithContext is ServerVersion with a context.
func (d *CachedDiscovery) ServerVersionWithContext(ctx context.Context) (*version.Info, error) {
	info, err := d.client.ServerVersion(ctx)
	return info, clientGoError(err)
}

// OpenAPISchema requests the OpenAPI v2 document.
func (d *CachedDiscovery) OpenAPISchema() (*openapi_v2.Document, error) {
	return d.OpenAPISchemaWithContext(d.ctx)
}

// OpenAPISchemaWithContext is OpenAPISchema with a context. client-go before 0.37 ignores the context.
func (d *CachedDiscovery) OpenAPISchemaWithContext(ctx context.Context) (*openapi_v2.Document, error) {
	type withContext interface {
		OpenAPISchemaWithContext(ctx context.Context) (*openapi_v2.Document, error)
	}
	if delegate, ok := any(d.delegate).(withContext); ok {
		return delegate.OpenAPISchemaWithContext(ctx)
	}
	return d.delegate.OpenAPISchema()
}

// OpenAPIV3 returns a client of the OpenAPI v3 documents. The documents are cached until Invalidate. client-go 0.37's
// OpenAPIV3WithContext does not cache documents.
func (d *CachedDiscovery) OpenAPIV3() openapi.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.openAPI == nil {
		d.openAPI = cachedopenapi.NewClient(d.delegate.OpenAPIV3())
	}
	return d.openAPI
}

// RESTClient returns client-go's client over the connection.
func (d *CachedDiscovery) RESTClient() rest.Interface { return d.delegate.RESTClient() }

// WithLegacy returns client-go's own discovery. It has no cache and sends a request for each group version.
func (d *CachedDiscovery) WithLegacy() clientgo.DiscoveryInterface { return d.delegate.WithLegacy() }
