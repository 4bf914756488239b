package dynamic

import (
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// Resource is a handle on one resource of one server, such as the deployments of apps/v1, and on one namespace or all.
// It is cheap, immutable and safe for concurrent use: In, AllNamespaces, Sub, Paging and Metadata return changed copies.
type Resource struct {
	conn      *transport.Conn
	discovery *discovery.Client // nil for none
	mapping   *restmapper.Mapping
	namespace string
	choice    namespaceChoice
	sub       string
	paging    Paging
	form      form
}

// namespaceChoice is how a handle came by its namespace.
type namespaceChoice int

const (
	byDefault    namespaceChoice = iota // the config's namespace; an object that names one goes there
	byIn                                // the caller's choice, which an object must not contradict
	inNamespaces                        // all of them
)

// In chooses the namespace. Without it a handle uses the config's namespace, as kubectl does. On a cluster-scoped
// resource every verb then refuses.
func (r *Resource) In(namespace string) *Resource {
	chosen := *r
	chosen.namespace, chosen.choice = namespace, byIn
	return &chosen
}

// AllNamespaces widens List, ListPage and Watch to every namespace. Verbs on one object then need the object itself to
// name its namespace.
func (r *Resource) AllNamespaces() *Resource {
	chosen := *r
	chosen.namespace, chosen.choice = "", inNamespaces
	return &chosen
}

// Sub chooses a subresource, such as "status" or "scale": the verbs then read and write that part of an object. A
// subresource that the server does not serve is refused by the verb.
func (r *Resource) Sub(name string) *Resource {
	chosen := *r
	chosen.sub = name
	return &chosen
}

// Mapping tells what the server says of the resource: its group, version, kind, scope, verbs and subresources. It is
// shared and must not be changed.
func (r *Resource) Mapping() *restmapper.Mapping { return r.mapping }

// Conn is the connection that the handle's requests go over: for requests that no verb makes, at a path of
// [Resource.Path].
func (r *Resource) Conn() *transport.Conn { return r.conn }

// String names the resource as errors do: deployments.apps, pods/status.
func (r *Resource) String() string {
	name := r.mapping.GVR.GroupResource().String()
	if r.sub != "" {
		return name + "/" + r.sub
	}
	return name
}
