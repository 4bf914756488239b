package controllerruntime

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// Constructors are the constructors of a manager's parts over a dynamic.Client. Their methods have the signatures of
// controller-runtime's options. Except as documented, a *rest.Config or *http.Client argument is not used. Constructors are safe
// for concurrent use.
type Constructors struct {
	// Intern shares equal maps and slices between unstructured objects and between versions of one object, in caches without a
	// transform. It saves memory and time. Handlers, predicates and reads without a copy get these objects: a write to an object
	// also changes objects with the same parts. Under go test such a cache compares a sample of its objects and panics after a
	// write. Set Intern before NewCache is called.
	Intern bool

	ctx    context.Context // for lookups without a context
	client *dynamic.Client
	config *rest.Config
}

// New returns constructors over a client. The client must stay open while a manager, client or cache of the constructors is in
// use. Methods without a context, such as meta.RESTMapper's, use ctx.
func New(ctx context.Context, client *dynamic.Client) *Constructors {
	return &Constructors{ctx: ctx, client: client, config: restconfig.FromConn(connOf(client))}
}

// Config returns a new copy of a config for requests over the same connection: for typed clientsets and, by manager.Configure,
// for the remaining parts of a manager. It has no credential to read: see restconfig.FromConn and, after [FromConfig],
// restconfig.WithConn.
func (c *Constructors) Config() *rest.Config { return rest.CopyConfig(c.config) }

// connOf returns the connection of a client.
func connOf(client *dynamic.Client) *transport.Conn {
	return client.ForGVR(schema.GroupVersionResource{}).Conn()
}

// MapperProvider returns the RESTMapper of the client, for manager.Options.MapperProvider.
func (c *Constructors) MapperProvider(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return c.mapper(), nil
}

func (c *Constructors) mapper() meta.RESTMapper { return c.client.Mapper().RESTMapper(c.ctx) }

// NewClient returns a client, for manager.Options.NewClient; it is a client.NewClientFunc. Of config only the warning handlers
// are used; nil is allowed. All options but HTTPClient have the same meaning as for client.New, and Mapper is anykind's by
// default. Read-your-writes consistency requires a cache of [Constructors.NewCache]; NewClient returns an error for any other
// cache.
func (c *Constructors) NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	_, wrapped, err := c.newClient(config, options)
	return wrapped, err
}

// NewClientWithWatch returns a client that can watch, as client.NewWithWatch does.
func (c *Constructors) NewClientWithWatch(config *rest.Config, options client.Options) (client.WithWatch, error) {
	base, wrapped, err := c.newClient(config, options)
	if err != nil {
		return nil, err
	}
	return &watchingClient{Client: wrapped, api: base.api}, nil
}
