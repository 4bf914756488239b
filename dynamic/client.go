package dynamic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/resourcepath"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// Client returns handles on the resources of a server. It is safe for concurrent use.
type Client struct {
	conn      *transport.Conn
	discovery *discovery.Client
	mapper    *restmapper.Mapper
	defaults  Defaults

	contentTypes *contentTypes
	shardProbe   *shardProbe
}

// Connect opens a connection and discovers the server's resources, with two requests to any current server. A nil cfg means the
// cluster found by [transport.Load] without options. The caller must close the client.
func Connect(ctx context.Context, cfg *transport.Config) (*Client, error) {
	if cfg == nil {
		var err error
		if cfg, err = transport.Load(ctx, nil); err != nil {
			return nil, err
		}
	}
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
	client := &Client{conn: conn, discovery: discoveryClient, mapper: restmapper.New(discoveryClient), shardProbe: newShardProbe()}
	if conn.UsesProtobuf() {
		client.contentTypes = &contentTypes{}
	}
	return client
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
	changed.shardProbe = newShardProbe() // a user may read less
	return &changed, nil
}

// Mapper returns the mapper for [Client.Discovery]. It also resolves lists of names and categories.
func (c *Client) Mapper() *restmapper.Mapper { return c.mapper }

// Close closes idle connections. Requests in flight are not interrupted. On a client from [Client.Impersonate] Close does
// nothing, because the original client owns the connections.
func (c *Client) Close() { c.conn.Close() }

// Conn returns the client's connection, for requests without a handle: requests outside of the API's resources, such as /version, and
// further clients of the same server. A client from [Client.Impersonate] has a connection of its own.
func (c *Client) Conn() *transport.Conn { return c.conn }

// Discovery returns the discovery client.
func (c *Client) Discovery() *discovery.Client { return c.discovery }

// Resource returns a handle on the named resource: "deploy", "deployments", "Deployment", "deployments.apps" or
// "deployments.v1.apps". See [restmapper.Mapper.Resource] for the rules and errors. The kind of a new CustomResourceDefinition
// is found after [Handle.Wait] for its condition Established.
func (c *Client) Resource(ctx context.Context, name string) (*Resource, error) {
	return c.newResource(c.mapper.Resource(ctx, name))
}

// ForKind returns a handle on the resource of a kind. Without gvk.Version it selects the server's preferred version.
func (c *Client) ForKind(ctx context.Context, gvk schema.GroupVersionKind) (*Resource, error) {
	return c.newResource(c.mapper.Kind(ctx, gvk))
}

// ForGVR returns a handle on a resource without a lookup. It sends no request. The server rejects an unknown resource.
//
// The scope is unknown. Paths have no namespace unless [Handle.Namespace] or the object to write sets it. Such a path belongs
// to a cluster-scoped resource, or to the objects of all namespaces. Verbs, subresources and kinds are not checked.
// [Handle.APIResource] has the GVR only. An object to write needs its kind. [Handle.Metadata] returns objects of kind
// PartialObjectMetadata.
func (c *Client) ForGVR(gvr schema.GroupVersionResource) *Resource {
	r := c.ForAPIResource(&discovery.Resource{GVR: gvr})
	r.isScopeUnknown = true
	r.namespace = ""
	return r
}

// ForAPIResource returns a handle on a known resource, from [Client.Mapper], a discovery.Snapshot or [Handle.APIResource]. The
// resource must not be changed afterwards. No request is sent. GVR, GVK and Namespaced suffice, for example those of a
// meta.RESTMapping. If Verbs and Subresources are empty, neither is checked.
func (c *Client) ForAPIResource(resource *discovery.Resource) *Resource {
	if resource == nil {
		resource = &discovery.Resource{} // every call returns an error
	}
	return &Resource{codec: objectCodec{}, endpoint: endpoint{
		conn: c.conn, discovery: c.discovery, apiResource: resource, defaults: c.defaults,
		namespace: cmp.Or(c.defaults.Namespace, c.conn.Namespace()), contentTypes: c.contentTypes, shardProbe: c.shardProbe,
	}}
}

// ForPath returns the handle and object name for an API path, as shown by kubectl -v=6 and in audit logs:
// /apis/apps/v1/namespaces/shop/deployments/web/scale. For the path of a collection name is "". A path without a namespace
// means all namespaces. [Handle.Path] is the inverse. handle.Named(name) lists, watches or follows the object or collection
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
	switch resource := r.apiResource; {
	case resource.GVR != parsed.gvr:
		return nil, "", fmt.Errorf("short name in a path (use %s)", resource.GVR.Resource)
	case parsed.namespace != "" && !resource.Namespaced:
		return nil, "", fmt.Errorf("%s is cluster-scoped (remove namespaces/%s)", resource.GVK.Kind, parsed.namespace)
	case parsed.namespace != "":
		r = r.Namespace(parsed.namespace)
	case resource.Namespaced && parsed.name != "":
		return nil, "", fmt.Errorf("%s is namespaced (put namespaces/NAME before %s)", resource.GVK.Kind, resource.GVR.Resource)
	case resource.Namespaced:
		r = r.AllNamespaces()
	}
	return r.Subresource(parsed.subresource), parsed.name, nil
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

// PreferredResources returns a handle on each resource selected by filter, in the server's preferred version and order. A nil
// filter selects all resources. It evaluates [discovery.Snapshot.PreferredResources] on the latest snapshot.
// [discovery.Client.Refresh] updates the snapshot. Handles on namespaced resources have the default namespace: see
// [Handle.AllNamespaces]. It may be called on handles on cluster-scoped resources, too.
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

func (c *Client) newResource(resource *discovery.Resource, err error) (*Resource, error) {
	if err != nil {
		return nil, err
	}
	return c.ForAPIResource(resource), nil
}

func (c *Client) newResources(resources []*discovery.Resource, err error) ([]*Resource, error) {
	if err != nil {
		return nil, err
	}
	handles := make([]*Resource, len(resources))
	for i, resource := range resources {
		handles[i] = c.ForAPIResource(resource)
	}
	return handles, nil
}

// Defaults are default options for calls. Zero fields mean no default. They apply to the verbs of handles, but not to requests
// over [Handle.Conn] or of package stream.
type Defaults struct {
	// Namespace is the namespace for namespaced resources in place of the config's. [Handle.Namespace] and the namespace of
	// an object to write take precedence. A handle from [Client.ForGVR] does not use it.
	Namespace string
	// FieldManager is the owner recorded by the server for written fields. The call's FieldManager takes precedence. With this
	// default, Apply needs no FieldManager.
	FieldManager string
	// FieldValidation is metav1.FieldValidationStrict, FieldValidationWarn or FieldValidationIgnore. The call's FieldValidation
	// takes precedence. Apply always rejects unknown fields.
	FieldValidation string
	// DryRun makes every write a dry run: the server validates the write and returns the result, but stores and deletes
	// nothing. Calls cannot turn it off. CreateToken still returns a usable token, because the server never stores tokens.
	DryRun bool
	// OnWarning is called with warnings of the server, instead of [transport.Options].OnWarning: once for each text unless
	// RepeatWarnings is set.
	OnWarning func(ctx context.Context, text string)
}

// WithDefaults returns a client with the given defaults. Set fields replace the client's defaults. Zero fields and nil keep
// them. The client shares connections, discovery and mapper with c.
func (c *Client) WithDefaults(defaults *Defaults) *Client {
	changed := *c
	set := valueOf(defaults)
	changed.defaults = c.defaults.with(set)
	if set.OnWarning != nil {
		changed.conn = c.conn.WithOnWarning(set.OnWarning)
	}
	return &changed
}

// Defaults returns the client's defaults, without OnWarning.
func (c *Client) Defaults() Defaults { return c.defaults }

// with returns d with the set fields of others.
func (d Defaults) with(others Defaults) Defaults {
	d.Namespace = cmp.Or(others.Namespace, d.Namespace)
	d.FieldManager = cmp.Or(others.FieldManager, d.FieldManager)
	d.FieldValidation = cmp.Or(others.FieldValidation, d.FieldValidation)
	d.DryRun = d.DryRun || others.DryRun
	d.OnWarning = nil // the connection has it
	return d
}

// addTo adds the defaults to the query of a write. Set parameters are kept. Options of a deletion are in its body instead.
func (d *Defaults) addTo(query url.Values, method string) url.Values {
	if method != http.MethodPost && method != http.MethodPut && method != http.MethodPatch {
		return query
	}
	if query == nil && (d.DryRun || d.FieldManager != "" || d.FieldValidation != "") {
		query = url.Values{}
	}
	if d.DryRun {
		query.Set("dryRun", metav1.DryRunAll)
	}
	if d.FieldManager != "" && query.Get("fieldManager") == "" {
		query.Set("fieldManager", d.FieldManager)
	}
	if d.FieldValidation != "" && query.Get("fieldValidation") == "" {
		query.Set("fieldValidation", d.FieldValidation)
	}
	return query
}

// deleteOptions returns opts with the default for DryRun.
func (d *Defaults) deleteOptions(opts *metav1.DeleteOptions) *metav1.DeleteOptions {
	if !d.DryRun || opts != nil && slices.Contains(opts.DryRun, metav1.DryRunAll) {
		return opts
	}
	dryRun := valueOf(opts)
	dryRun.DryRun = []string{metav1.DryRunAll}
	return &dryRun
}
