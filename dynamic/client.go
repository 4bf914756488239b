package dynamic

import (
	"context"
	"errors"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client gives handles on the resources of one server. It is safe for concurrent use.
type Client struct {
	conn      *transport.Conn
	discovery *discovery.Client
	mapper    *restmapper.Mapper
}

// Connect opens a connection and asks the server what it serves, two requests on any current server. Close the client
// when done.
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

// New makes a client over a connection that is there already, and a discovery client of the same server, which a
// program may have made with a cache, with a saved snapshot or for others to share; nil means one of its own. It asks the
// server what it serves when the first resource is looked up.
func New(conn *transport.Conn, served *discovery.Client) *Client {
	if served == nil {
		served = discovery.New(conn, nil)
	}
	return &Client{conn: conn, discovery: served, mapper: restmapper.New(served)}
}

// Close closes idle connections. Requests under way go on until they end by themselves.
func (c *Client) Close() { c.conn.Close() }

// Discovery tells what the server serves.
func (c *Client) Discovery() *discovery.Client { return c.discovery }

// Resource gives a handle on the resource that a name means: "deploy", "deployments", "Deployment",
// "deployments.apps" or "deployments.v1.apps"; [restmapper.Mapper.Resource] has the rules and the errors. The kind of a
// CustomResourceDefinition is found once a [Resource.Wait] for its condition Established has returned.
func (c *Client) Resource(ctx context.Context, name string) (*Resource, error) {
	mapping, err := c.mapper.Resource(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.handle(mapping), nil
}

// Kind gives a handle on the resource that holds objects of a kind; a gvk without a version means the version that the
// server prefers.
func (c *Client) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*Resource, error) {
	mapping, err := c.mapper.Kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	return c.handle(mapping), nil
}

// Of gives a handle on the resource that obj belongs to, in obj's namespace where it names one.
func (c *Client) Of(ctx context.Context, obj *unstructured.Object) (*Resource, error) {
	if obj == nil {
		return nil, errors.New("find the resource of an object: the object is nil")
	}
	resource, err := c.Kind(ctx, obj.GroupVersionKind())
	if err != nil || obj.GetNamespace() == "" {
		return resource, err
	}
	return resource.In(obj.GetNamespace()), nil
}

func (c *Client) handle(mapping *restmapper.Mapping) *Resource {
	return &Resource{conn: c.conn, discovery: c.discovery, mapping: mapping, namespace: c.conn.Namespace()}
}
