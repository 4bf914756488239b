package controllerruntime

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Constructors are the constructors of a manager's parts over one client of anykind. Their methods have the signatures of
// controller-runtime's options; a *rest.Config and an *http.Client that they get are not used, except as documented. They are
// safe for concurrent use.
type Constructors struct {
	ctx    context.Context // of lookups without one
	client *dynamic.Client
}

// New returns constructors over a client, which must not be closed while what they make is in use. ctx is that of calls for
// which controller-runtime's interfaces have none, such as meta.RESTMapper's.
func New(ctx context.Context, client *dynamic.Client) *Constructors {
	return &Constructors{ctx: ctx, client: client}
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
