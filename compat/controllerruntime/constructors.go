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

// Constructors are the constructors of a manager's parts over one client of anykind. Their methods have the signatures of
// controller-runtime's options; a *rest.Config and an *http.Client that they get are not used, except as documented. They are
// safe for concurrent use.
type Constructors struct {
	// Intern lets unstructured objects of caches without a transform share equal maps and slices, with each other and with their
	// previous versions. It saves memory and time. Handlers, predicates and reads without a copy get these objects: a write to
	// one of them changes others, too. Under go test such a cache compares a sample of its objects and panics after a write.
	// Intern is set before NewCache is called.
	Intern bool

	ctx    context.Context // of lookups without one
	client *dynamic.Client
	config *rest.Config
}

// New returns constructors over a client, which must not be closed while what they make is in use. ctx is that of calls for
// which controller-runtime's interfaces have none, such as meta.RESTMapper's.
func New(ctx context.Context, client *dynamic.Client) *Constructors {
	return &Constructors{ctx: ctx, client: client, config: restconfig.FromConn(connOf(client))}
}

// Config returns a config of the caller's own, whose requests take the same connection: for typed clientsets and, by
// manager.Configure, for the parts of a manager that the other methods do not make. It has no credential to read: see
// restconfig.FromConn and, after [FromConfig], restconfig.WithConn.
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

// NewClient returns a client, for manager.Options.NewClient; it is a client.NewClientFunc. Of the config only the warning
// handlers are used; nil is allowed. All options but HTTPClient have the meaning that they have for client.New, and Mapper is
// anykind's by default. Read-your-writes consistency takes a cache of [Constructors.NewCache]; with another one, which NewClient
// cannot wait for, it is an error.
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
