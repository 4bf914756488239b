package dynamic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/resourcepath"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client returns handles on the resources of a server. It is safe for concurrent use.
type Client struct {
	conn      *transport.Conn
	discovery *discovery.Client
	mapper    *restmapper.Mapper
	lookup    resourceMapper // mapper, or the mapper of WithRESTMapper
	defaults  Defaults
}

type resourceMapper interface {
	Resource(ctx context.Context, name string) (*discovery.Resource, error)
	Kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error)
}

// Connect opens a connection and discovers the server's resources, with two requests to any current server. The caller must
// close the client.
func Connect(ctx context.Context, cfg *transport.Config) (*Client, error) {
	conn, err := transport.Open(cfg)
	if err != nil {
		return nil, err
	}
	client := New(conn, nil)
	if _, err := client.discovery.Refresh(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return client, nil
}

// New returns a client for an open connection. discoveryClient must belong to the same server, for example with a cache, with a
// saved snapshot, or shared. nil means a new discovery client. Discovery starts with the first lookup of a resource.
func New(conn *transport.Conn, discoveryClient *discovery.Client) *Client {
	if discoveryClient == nil {
		discoveryClient = discovery.New(conn, nil)
	}
	mapper := restmapper.New(discoveryClient)
	return &Client{conn: conn, discovery: discoveryClient, mapper: mapper, lookup: mapper}
}

// Impersonate returns a client that impersonates user. See [transport.Conn.Impersonate] for the required permissions and for
// errors. The client shares connections, discovery and mapper with c. It costs no request and less than 2 KB of memory, apart
// from the text of user. A program with many users may create a client for each incoming request.
//
// Handles hold no responses: every response belongs to a request made as user. Discovery still authenticates as the user of c.
// Its snapshots and errors are shared by all clients. A user without access to discovery therefore learns from handles and
// lookup errors which resources are served.
func (c *Client) Impersonate(user transport.Impersonation) (*Client, error) {
	conn, err := c.conn.Impersonate(user)
	if err != nil {
		return nil, err
	}
	changed := *c
	changed.conn = conn
	return &changed, nil
}

// WithRESTMapper returns a client with a different mapper for lookups of names, kinds, objects and paths, for example the
// mapper of controller-runtime. It shares connections and discovery with c. Errors of the mapper are wrapped. A meta.RESTMapper
// has no verbs and subresources, so unsupported ones are rejected by the server only. Names are parsed as in kubectl, and short
// names are resolved if the mapper supports them. Without the methods of meta.RESTMapperWithContext the mapper does not observe
// ctx.
func (c *Client) WithRESTMapper(mapper meta.RESTMapper) *Client {
	changed := *c
	withContext, ok := mapper.(restMapperWithContext)
	if !ok {
		withContext = restMapperWithoutContext{mapper}
	}
	changed.lookup = &metaMapper{withContext}
	return &changed
}

// Mapper returns the mapper for [Client.Discovery]. It also resolves lists of names and categories.
func (c *Client) Mapper() *restmapper.Mapper { return c.mapper }

// Close closes idle connections. Requests in flight are not interrupted. On a client from [Client.Impersonate] Close does
// nothing, because the original client owns the connections.
func (c *Client) Close() { c.conn.Close() }

// Discovery returns the discovery client.
func (c *Client) Discovery() *discovery.Client { return c.discovery }

// Resource returns a handle on the named resource: "deploy", "deployments", "Deployment", "deployments.apps" or
// "deployments.v1.apps". See [restmapper.Mapper.Resource] for the rules and errors. The kind of a new CustomResourceDefinition
// is found after [Resource.Wait] for its condition Established.
func (c *Client) Resource(ctx context.Context, name string) (*Resource, error) {
	return c.newResource(c.lookup.Resource(ctx, name))
}

// ForKind returns a handle on the resource of a kind. Without gvk.Version it selects the server's preferred version.
func (c *Client) ForKind(ctx context.Context, gvk schema.GroupVersionKind) (*Resource, error) {
	return c.newResource(c.lookup.Kind(ctx, gvk))
}

// ForGVR returns a handle on a resource without a lookup. It sends no request. The server rejects an unknown resource.
//
// The scope is unknown. Paths have no namespace unless [Resource.Namespace] or the object to write sets it. Such a path belongs
// to a cluster-scoped resource, or to the objects of all namespaces. Verbs, subresources and kinds are not checked.
// [Resource.Mapping] has the GVR only. An object to write needs its kind. [Resource.Metadata] returns objects of kind
// PartialObjectMetadata.
func (c *Client) ForGVR(gvr schema.GroupVersionResource) *Resource {
	r := c.ForMapping(&discovery.Resource{GVR: gvr})
	r.isScopeUnknown = true
	r.namespace = ""
	return r
}

// ForMapping returns a handle for a known mapping, from [Client.Mapper], a discovery.Snapshot or an existing handle. The
// mapping must not be changed afterwards. No request is sent. For a mapping from elsewhere, such as a meta.RESTMapping, GVR,
// GVK and Namespaced suffice. If Verbs and Subresources are empty, neither is checked.
func (c *Client) ForMapping(mapping *discovery.Resource) *Resource {
	if mapping == nil {
		mapping = &discovery.Resource{} // every call returns an error
	}
	return &Resource{
		conn: c.conn, discovery: c.discovery, mapping: mapping, defaults: c.defaults,
		namespace: cmp.Or(c.defaults.Namespace, c.conn.Namespace()),
	}
}

// ForObject returns a handle on the resource of obj, in obj's namespace if it is set.
func (c *Client) ForObject(ctx context.Context, obj *unstructured.Object) (*Resource, error) {
	if obj == nil {
		return nil, errors.New("find the resource of an object: the object is nil")
	}
	resource, err := c.ForKind(ctx, obj.GroupVersionKind())
	if err != nil || obj.GetNamespace() == "" {
		return resource, err
	}
	return resource.Namespace(obj.GetNamespace()), nil
}

// ForPath returns the handle and object name for an API path, as shown by kubectl -v=6 and in audit logs:
// /apis/apps/v1/namespaces/shop/deployments/web/scale. For the path of a collection name is "". A path without a namespace
// means all namespaces. [Resource.Path] is the inverse. handle.Named(name) lists, watches or follows the object or collection
// at the path. Unknown resources return errors of [restmapper.Mapper.Resource]. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func (c *Client) ForPath(ctx context.Context, path string) (r *Resource, name string, err error) {
	defer func() {
		if err != nil {
			r = nil
			name = ""
			err = fmt.Errorf("find the resource at %q: %w", path, err)
		}
	}()
	parsed, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	r, err = c.Resource(ctx, parsed.gvr.Resource+"."+parsed.gvr.Version+"."+parsed.gvr.Group)
	if err != nil {
		return nil, "", err
	}
	switch mapping := r.mapping; {
	case mapping.GVR != parsed.gvr:
		return nil, "", fmt.Errorf("short name in a path (use %s)", mapping.GVR.Resource)
	case parsed.namespace != "" && !mapping.Namespaced:
		return nil, "", fmt.Errorf("%s is cluster-scoped (remove namespaces/%s)", mapping.GVK.Kind, parsed.namespace)
	case parsed.namespace != "":
		r = r.Namespace(parsed.namespace)
	case mapping.Namespaced && parsed.name != "":
		return nil, "", fmt.Errorf("%s is namespaced (put namespaces/NAME before %s)", mapping.GVK.Kind, mapping.GVR.Resource)
	case mapping.Namespaced:
		r = r.AllNamespaces()
	}
	return r.Subresource(parsed.subresource), parsed.name, nil
}

// PreferredResources returns a handle on each resource selected by filter, in the server's preferred version and order. A nil
// filter selects all resources. It evaluates [discovery.Snapshot.PreferredResources] on the latest snapshot.
// [discovery.Client.Refresh] updates the snapshot. Handles on namespaced resources have the default namespace: see
// [Resource.AllNamespaces]. It may be called on handles on cluster-scoped resources, too.
func (c *Client) PreferredResources(ctx context.Context, filter *discovery.ResourceFilter) ([]*Resource, error) {
	snapshot, err := c.discovery.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return c.newResources(slices.Collect(snapshot.PreferredResources(filter)), nil)
}

// WaitForResources waits until the server serves all names and returns handles in the same order. The CustomResourceDefinitions
// need not exist yet. ctx bounds the wait. See [restmapper.Mapper.WaitForResources] for the errors.
func (c *Client) WaitForResources(ctx context.Context, names ...string) ([]*Resource, error) {
	return c.newResources(c.mapper.WaitForResources(ctx, names...))
}

// WaitForKinds is like [Client.WaitForResources], but for kinds. A kind without a version means the server's preferred version.
func (c *Client) WaitForKinds(ctx context.Context, kinds ...schema.GroupVersionKind) ([]*Resource, error) {
	return c.newResources(c.mapper.WaitForKinds(ctx, kinds...))
}

type parsedPath struct {
	gvr                          schema.GroupVersionResource
	namespace, name, subresource string
}

// parsePath splits a path like the API server.
func parsePath(path string) (parsed parsedPath, err error) {
	if strings.ContainsAny(path, "?#") {
		return parsed, errors.New("a query is not part of a path (pass options to the verbs)")
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments {
		if segments[i], err = url.PathUnescape(segment); err != nil {
			return parsed, err
		}
		if reason := invalidSegment(segments[i]); reason != "" {
			return parsed, fmt.Errorf("segment %q %s", segment, reason)
		}
	}
	p, ok := resourcepath.ParseSegments(segments)
	switch {
	case !ok || p.IsWatch:
		return parsed, errors.New("not of the form /api/VERSION/RESOURCE… or /apis/GROUP/VERSION/RESOURCE…")
	case len(p.Rest) > 0:
		return parsed, fmt.Errorf("segments after the subresource %s", p.Subresource)
	}
	gvr := schema.GroupVersionResource{Group: p.Group, Version: p.Version, Resource: p.Resource}
	return parsedPath{gvr, p.Namespace, p.Name, p.Subresource}, nil
}

func (c *Client) newResource(mapping *discovery.Resource, err error) (*Resource, error) {
	if err != nil {
		return nil, err
	}
	return c.ForMapping(mapping), nil
}

func (c *Client) newResources(mappings []*discovery.Resource, err error) ([]*Resource, error) {
	if err != nil {
		return nil, err
	}
	resources := make([]*Resource, len(mappings))
	for i, mapping := range mappings {
		resources[i] = c.ForMapping(mapping)
	}
	return resources, nil
}

// restMapperWithContext is the subset of meta.RESTMapperWithContext (apimachinery 0.37) needed by metaMapper.
type restMapperWithContext interface {
	KindForWithContext(context.Context, schema.GroupVersionResource) (schema.GroupVersionKind, error)
	ResourceForWithContext(context.Context, schema.GroupVersionResource) (schema.GroupVersionResource, error)
	RESTMappingWithContext(context.Context, schema.GroupKind, ...string) (*meta.RESTMapping, error)
}

// restMapperWithoutContext adapts a meta.RESTMapper. It ignores the contexts of calls.
type restMapperWithoutContext struct{ meta.RESTMapper }

func (m restMapperWithoutContext) KindForWithContext(_ context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.KindFor(resource)
}

func (m restMapperWithoutContext) ResourceForWithContext(_ context.Context, partial schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.ResourceFor(partial)
}

func (m restMapperWithoutContext) RESTMappingWithContext(_ context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.RESTMapping(gk, versions...)
}

type metaMapper struct{ mapper restMapperWithContext }

// Resource resolves a name in kubectl's order: as resource with version and group, resource with group, kind.
func (m *metaMapper) Resource(ctx context.Context, name string) (*discovery.Resource, error) {
	var candidates []func() (*discovery.Resource, error)
	versioned, resource := schema.ParseResourceArg(name)
	if versioned != nil {
		candidates = append(candidates, func() (*discovery.Resource, error) { return m.resource(ctx, *versioned) })
	}
	candidates = append(candidates, func() (*discovery.Resource, error) { return m.resource(ctx, resource.WithVersion("")) })
	versionedKind, kind := schema.ParseKindArg(name)
	if versionedKind != nil {
		candidates = append(candidates, func() (*discovery.Resource, error) { return m.kind(ctx, *versionedKind) })
	}
	candidates = append(candidates, func() (*discovery.Resource, error) { return m.kind(ctx, kind.WithVersion("")) })
	var first error
	for _, candidate := range candidates {
		found, err := candidate()
		if err == nil {
			return found, nil
		}
		if !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("find the resource %q: %w", name, err)
		}
		first = cmp.Or(first, err)
	}
	return nil, fmt.Errorf("find the resource %q: %w", name, first)
}

func (m *metaMapper) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error) {
	found, err := m.kind(ctx, gvk)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	return found, nil
}

func (m *metaMapper) resource(ctx context.Context, partial schema.GroupVersionResource) (*discovery.Resource, error) {
	gvr, err := m.mapper.ResourceForWithContext(ctx, partial)
	if err != nil {
		return nil, err
	}
	gvk, err := m.mapper.KindForWithContext(ctx, gvr)
	if err != nil {
		return nil, err
	}
	found, err := m.kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	found.GVR = gvr // the kind may have several resources
	return found, nil
}

func (m *metaMapper) kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error) {
	var versions []string
	if gvk.Version != "" {
		versions = []string{gvk.Version}
	}
	mapping, err := m.mapper.RESTMappingWithContext(ctx, gvk.GroupKind(), versions...)
	switch {
	case err != nil:
		return nil, err
	case mapping == nil || mapping.Scope == nil:
		return nil, fmt.Errorf("the RESTMapper has no scope for %s", gvk)
	}
	return &discovery.Resource{
		GVR: mapping.Resource, GVK: mapping.GroupVersionKind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}, nil
}
