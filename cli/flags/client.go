package flags

import (
	"context"
	"errors"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
)

// Client returns the client. All calls return the same client. Its first request opens a connection; Close closes the connection.
func (c *Connection) Client(ctx context.Context) (*dynamic.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	cfg, err := c.configLocked(ctx)
	if err != nil {
		return nil, err
	}
	withTimeout := *cfg
	if c.timeout > 0 {
		withTimeout.WrapTransport = withRequestTimeout(cfg.WrapTransport, c.timeout)
	}
	conn, err := transport.Open(&withTimeout)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	client := dynamic.New(conn, discovery.New(conn, &discovery.Options{CacheDir: c.CacheDir}))
	c.client = client.WithDefaults(&dynamic.Defaults{FieldManager: c.FieldManager})
	return c.client, nil
}

// Conn returns the client's connection, for requests without a handle.
func (c *Connection) Conn(ctx context.Context) (*transport.Conn, error) {
	if _, err := c.Client(ctx); err != nil {
		return nil, err
	}
	return c.conn, nil
}

// Schemas returns a client of the schemas of the server's kinds. All calls return the same client. It keeps documents in CacheDir.
func (c *Connection) Schemas(ctx context.Context) (*schema.Client, error) {
	conn, err := c.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemas == nil {
		c.schemas = schema.New(conn, &schema.Options{Dir: c.CacheDir})
	}
	return c.schemas, nil
}

// KindSchema returns the kind of a type as users name it, and its schema.
func (c *Connection) KindSchema(ctx context.Context, typeName string) (gvk kschema.GroupVersionKind, kind *schema.Schema, err error) {
	handle, err := c.Handle(ctx, typeName)
	if err != nil {
		return gvk, nil, err
	}
	schemas, err := c.Schemas(ctx)
	if err != nil {
		return gvk, nil, err
	}
	gvk = handle.APIResource().GVK
	kind, err = schemas.Kind(ctx, gvk)
	return gvk, kind, err
}

// Close closes the client's idle connections.
func (c *Connection) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.Close()
	}
}

// Namespace returns the namespace of the flags or the context, or "default". explicit reports whether a flag set the namespace.
func (c *Connection) Namespace(ctx context.Context) (namespace string, explicit bool, err error) {
	if c.NamespaceFlag != "" {
		return c.NamespaceFlag, true, nil
	}
	cfg, err := c.Config(ctx)
	if err != nil {
		return "", false, err
	}
	if cfg.Namespace == "" {
		return "default", false, nil
	}
	return cfg.Namespace, false, nil
}

// Handle returns a handle on the resource with a name, in the namespace of the flags or the context. An ambiguous name means its
// first resource, as in kubectl.
func (c *Connection) Handle(ctx context.Context, name string) (*dynamic.Resource, error) {
	client, err := c.Client(ctx)
	if err != nil {
		return nil, err
	}
	r, err := client.Resource(ctx, name)
	var ambiguous *restmapper.AmbiguousError
	if !errors.As(err, &ambiguous) {
		return r, err
	}
	first := ambiguous.Candidates[0]
	return client.Resource(ctx, first.Resource+"."+first.Version+"."+first.Group)
}

// Handles returns handles on the resources of a comma-separated list of names and categories. A category takes precedence over a
// resource of the same name. Duplicates are removed.
func (c *Connection) Handles(ctx context.Context, list string) ([]*dynamic.Resource, error) {
	client, err := c.Client(ctx)
	if err != nil {
		return nil, err
	}
	var handles []*dynamic.Resource
	seen := map[string]bool{}
	add := func(handle *dynamic.Resource) {
		if key := handle.APIResource().GVR.String(); !seen[key] {
			seen[key] = true
			handles = append(handles, handle)
		}
	}
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		resources, err := client.Mapper().Resources(ctx, name)
		var ambiguous *restmapper.AmbiguousError
		switch {
		case errors.As(err, &ambiguous):
			handle, err := c.Handle(ctx, name)
			if err != nil {
				return nil, err
			}
			add(handle)
		case err != nil:
			return nil, err
		default:
			for _, resource := range resources {
				add(client.ForAPIResource(resource))
			}
		}
	}
	return handles, nil
}
