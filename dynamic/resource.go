package dynamic

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/transport"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is a handle on a resource of a server, such as the deployments of apps/v1, in a single namespace or in all
// namespaces. It is cheap, immutable and safe for concurrent use: Namespace, AllNamespaces, Named, Subresource, Paging,
// Metadata and WithDefaults return changed copies.
type Resource struct {
	conn           *transport.Conn
	discovery      *discovery.Client // the client's; may be nil
	mapping        *discovery.Resource
	namespace      string
	scope          namespaceScope
	isScopeUnknown bool   // the mapping has no scope
	name           string // object name; "" for all objects
	subresource    string
	paging         PagingOptions
	representation representation
	defaults       Defaults
	onWrite        []func(ctx context.Context, namespace, name string) (end func(Write))
}

type namespaceScope int

const (
	defaultNamespace namespaceScope = iota // the config's; an object's own namespace takes precedence
	chosenNamespace                        // the caller's; an object must have the same or none
	allNamespaces
)

// Namespace sets the namespace. The default is the config's namespace, as in kubectl. On a cluster-scoped resource every verb
// then returns an error.
func (r *Resource) Namespace(namespace string) *Resource {
	changed := *r
	changed.namespace = namespace
	changed.scope = chosenNamespace
	return &changed
}

// AllNamespaces makes List, ListPage, Watch and Follow return the objects of every namespace. Create, Update and Apply then use
// the object's namespace. Verbs for a single named object, such as Get, return an error.
func (r *Resource) AllNamespaces() *Resource {
	changed := *r
	changed.namespace = ""
	changed.scope = allNamespaces
	return &changed
}

// Named selects a single object. "" selects all objects again. List, ListPage, Watch, Follow and DeleteCollection then use the
// field selector metadata.name: RBAC rules with resourceNames suffice, and a missing object is not an error. Verbs for single
// objects, including Create, Update and Apply, reject a different name. On a subresource, Create, Update and Apply send name in
// the path. There the object may be of any kind, with a different name or none:
//
//	serviceAccounts.Named("robot").Subresource("token").Create(ctx, tokenRequest, nil)
func (r *Resource) Named(name string) *Resource {
	changed := *r
	changed.name = name
	return &changed
}

// Subresource selects a subresource, such as "status" or "scale", for subsequent verbs. Verbs return an error if the server
// does not serve it. Create, Update and Apply write to the object named like the body, or to the object selected by
// [Resource.Named].
func (r *Resource) Subresource(name string) *Resource {
	changed := *r
	changed.subresource = name
	return &changed
}

// isNamespaced reports whether object paths contain a namespace.
func (r *Resource) isNamespaced() bool {
	if r.isScopeUnknown {
		return r.scope == chosenNamespace
	}
	return r.mapping.Namespaced
}

// Mapping returns the group, version, kind, scope, verbs and subresources of the resource. It is shared and read-only.
func (r *Resource) Mapping() *discovery.Resource { return r.mapping }

// Conn returns the connection of the handle. It is for requests without a verb in this package, at a path from [Resource.Path].
func (r *Resource) Conn() *transport.Conn { return r.conn }

// Path returns the path of the named object, or of the handle's collection if name is "". The path is escaped for
// transport.Request: /apis/apps/v1/namespaces/shop/deployments/web. [Client.ForPath] is the inverse.
func (r *Resource) Path(name string) (string, error) {
	var err error
	switch {
	case name != "":
		err = r.validateObjectPath("find", name)
	case r.subresource != "":
		err = r.invalid("find", "", "a subresource belongs to one object (give the object's name)")
	default:
		err = r.validateCollectionPath("find", "")
	}
	if err != nil {
		return "", err
	}
	return r.path(name), nil
}

// String returns the resource as in errors: deployments.apps, pods/status.
func (r *Resource) String() string {
	name := r.mapping.GVR.GroupResource().String()
	if r.subresource != "" {
		return name + "/" + r.subresource
	}
	return name
}

// Defaults are default options for calls. Zero fields mean no default. They apply to the verbs of handles, but not to requests
// over [Resource.Conn] or of package stream.
type Defaults struct {
	// Namespace is the namespace for namespaced resources in place of the config's. [Resource.Namespace] and the namespace of
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

// WithDefaults is like [Client.WithDefaults], but for a single handle.
func (r *Resource) WithDefaults(defaults *Defaults) *Resource {
	changed := *r
	set := valueOf(defaults)
	changed.defaults = r.defaults.with(set)
	if set.OnWarning != nil {
		changed.conn = r.conn.WithOnWarning(set.OnWarning)
	}
	if r.scope == defaultNamespace && !r.isScopeUnknown {
		changed.namespace = cmp.Or(set.Namespace, r.namespace)
	}
	return &changed
}

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
func (d *Defaults) addTo(query url.Values, method string, isApply bool) url.Values {
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
	if d.FieldValidation != "" && query.Get("fieldValidation") == "" && !isApply {
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
