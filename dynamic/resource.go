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

// Resource is a handle on one resource of one server, such as the deployments of apps/v1, in one namespace or in all. It
// is cheap, immutable and safe for concurrent use: Namespace, AllNamespaces, Named, Subresource, Paging, Metadata and
// WithDefaults return changed copies.
type Resource struct {
	conn           *transport.Conn
	discovery      *discovery.Client // of the client that made the handle, nil for none
	mapping        *discovery.Resource
	namespace      string
	scope          namespaceScope
	isScopeUnknown bool   // the mapping does not tell whether the resource is namespaced
	name           string // of the one object, "" for all
	subresource    string
	paging         PagingOptions
	representation representation
	defaults       Defaults
	onWrite        []func(ctx context.Context, namespace, name string) (end func(Write))
}

type namespaceScope int

const (
	defaultNamespace namespaceScope = iota // the config's; the namespace of an object to write takes precedence
	chosenNamespace                        // the caller's; an object to write must not have another
	allNamespaces
)

// Namespace chooses the namespace; the default is the config's, as for kubectl. On a cluster-scoped resource every verb
// then returns an error.
func (r *Resource) Namespace(namespace string) *Resource {
	changed := *r
	changed.namespace, changed.scope = namespace, chosenNamespace
	return &changed
}

// AllNamespaces makes List, ListPage, Watch and Follow return the objects of every namespace. Create, Update and Apply
// then take the object's own namespace; other verbs on one object return an error.
func (r *Resource) AllNamespaces() *Resource {
	changed := *r
	changed.namespace, changed.scope = "", allNamespaces
	return &changed
}

// Named chooses one object; "" chooses all again. List, ListPage, Watch, Follow and DeleteCollection then select that object by
// the field selector metadata.name, for which RBAC rules with resourceNames suffice, and return no error if it does not exist.
// Verbs on one object reject another name, and so do Create, Update and Apply, except on a subresource: there the name is that
// of the path, and the object may be of any kind and have another name or none:
//
//	serviceAccounts.Named("robot").Subresource("token").Create(ctx, tokenRequest, nil)
func (r *Resource) Named(name string) *Resource {
	changed := *r
	changed.name = name
	return &changed
}

// Subresource chooses a subresource, such as "status" or "scale", which the verbs then read and write. They return an
// error if the server does not serve it. Create, Update and Apply write to the object that has the name of their object, or
// that [Resource.Named] chooses.
func (r *Resource) Subresource(name string) *Resource {
	changed := *r
	changed.subresource = name
	return &changed
}

// isNamespaced reports whether the paths of objects have a namespace.
func (r *Resource) isNamespaced() bool {
	if r.isScopeUnknown {
		return r.scope == chosenNamespace
	}
	return r.mapping.Namespaced
}

// Mapping returns the group, version, kind, scope, verbs and subresources of the resource. It is shared and read-only.
func (r *Resource) Mapping() *discovery.Resource { return r.mapping }

// Conn returns the connection that the handle uses, for requests that no verb sends, at a path from [Resource.Path].
func (r *Resource) Conn() *transport.Conn { return r.conn }

// Path returns the path of the object of that name or, for "", of the handle's collection, escaped and ready for a
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

// String returns the resource as it appears in errors: deployments.apps, pods/status.
func (r *Resource) String() string {
	name := r.mapping.GVR.GroupResource().String()
	if r.subresource != "" {
		return name + "/" + r.subresource
	}
	return name
}

// Defaults are options of calls that do not set them. The zero value of a field is no default. They apply to the verbs of
// handles, and not to requests that a caller sends over [Resource.Conn] or that package stream sends.
type Defaults struct {
	// Namespace is the namespace of namespaced resources instead of the config's; [Resource.Namespace] and the namespace of
	// an object to write take precedence. A handle from [Client.ForGVR] does not use it.
	Namespace string
	// FieldManager is the name under which the server records the fields that are written; the call's own takes precedence.
	// It suffices for Apply.
	FieldManager string
	// FieldValidation is metav1.FieldValidationStrict, FieldValidationWarn or FieldValidationIgnore; the call's own takes
	// precedence. Apply always rejects fields that the kind does not have.
	FieldValidation string
	// DryRun makes every write a dry run: the server validates it and returns the result, but stores and deletes nothing. No
	// call can turn it off. CreateToken returns a usable token all the same, as the server stores none.
	DryRun bool
	// OnWarning is called with every warning of the server, instead of [transport.Options].OnWarning: once for each text
	// unless RepeatWarnings is set.
	OnWarning func(ctx context.Context, text string)
}

// WithDefaults returns a client whose handles have these defaults: a field that is set replaces that of the client, one that
// is not leaves it as it is, and nil changes nothing. It shares connections, discovery and mapper with c.
func (c *Client) WithDefaults(defaults *Defaults) *Client {
	changed, set := *c, valueOf(defaults)
	changed.defaults = c.defaults.with(set)
	if set.OnWarning != nil {
		changed.conn = c.conn.WithOnWarning(set.OnWarning)
	}
	return &changed
}

// WithDefaults is [Client.WithDefaults] for one handle.
func (r *Resource) WithDefaults(defaults *Defaults) *Resource {
	changed, set := *r, valueOf(defaults)
	changed.defaults = r.defaults.with(set)
	if set.OnWarning != nil {
		changed.conn = r.conn.WithOnWarning(set.OnWarning)
	}
	if r.scope == defaultNamespace && !r.isScopeUnknown {
		changed.namespace = cmp.Or(set.Namespace, r.namespace)
	}
	return &changed
}

// with returns d with the fields of others that are set.
func (d Defaults) with(others Defaults) Defaults {
	d.Namespace = cmp.Or(others.Namespace, d.Namespace)
	d.FieldManager = cmp.Or(others.FieldManager, d.FieldManager)
	d.FieldValidation = cmp.Or(others.FieldValidation, d.FieldValidation)
	d.DryRun = d.DryRun || others.DryRun
	d.OnWarning = nil // the connection has it
	return d
}

// addTo adds the defaults that the query of a write does not have. The options of a deletion are in its body.
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

// deleteOptions returns opts as a dry run if that is the default.
func (d *Defaults) deleteOptions(opts *metav1.DeleteOptions) *metav1.DeleteOptions {
	if !d.DryRun || opts != nil && slices.Contains(opts.DryRun, metav1.DryRunAll) {
		return opts
	}
	dryRun := valueOf(opts)
	dryRun.DryRun = []string{metav1.DryRunAll}
	return &dryRun
}
