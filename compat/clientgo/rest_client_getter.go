package clientgo

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	clientgo "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// RESTClientGetter implements cli-runtime's genericclioptions.RESTClientGetter and resource.RESTClientGetter over a connection.
// kubectl plugins, resource.NewBuilder and Helm take these interfaces. RESTClientGetter is safe for concurrent use.
type RESTClientGetter struct {
	ctx     context.Context //nolint:containedctx // cli-runtime's interface has no contexts
	configs ConfigGetter
	options *discovery.Options // of the discovery client over configs

	mu      sync.Mutex
	clients *getterClients // nil until the first successful call
}

// getterClients are the config, discovery and mapper of a RESTClientGetter, over a shared connection.
type getterClients struct {
	config    *rest.Config
	discovery *CachedDiscovery
	mapper    meta.ResettableRESTMapper
}

// ConfigGetter is the part of cli-runtime's RESTClientGetter that depends on kubeconfigs and flags.
type ConfigGetter interface {
	ToRESTConfig() (*rest.Config, error)
	ToRawKubeConfigLoader() clientcmd.ClientConfig
}

// WrapRESTClientGetter returns a RESTClientGetter with the server, the credential and the settings of getter, such as a
// genericclioptions.ConfigFlags. getter keeps reading kubeconfigs and flags: ToRawKubeConfigLoader returns its loader, with the
// namespace and whether --namespace was set. A connection of restconfig.ToConn sends the requests; for the config of ToRESTConfig
// see restconfig.WithConn. options configure the discovery client; nil means defaults.
//
// Nothing is read before the first call, so flags may be parsed after WrapRESTClientGetter. The first successful call fixes the
// connection. Methods without a context, such as the mapper's, use ctx. Idle connections are closed when ctx ends.
func WrapRESTClientGetter(ctx context.Context, getter ConfigGetter, options *discovery.Options) *RESTClientGetter {
	return &RESTClientGetter{ctx: ctx, configs: getter, options: options}
}

// NewRESTClientGetter returns a RESTClientGetter over a connection and a discovery client of the same server, for a program
// without cli-runtime's flags. Its loader has the connection's namespace and never reports --namespace as set. transport.Load
// gives a connection the namespace of a kubeconfig; restconfig.ToConn cannot. A program with flags calls [WrapRESTClientGetter].
// Methods without a context, such as the mapper's, use ctx.
func NewRESTClientGetter(ctx context.Context, conn *transport.Conn, client *discovery.Client) (*RESTClientGetter, error) {
	clients, err := newGetterClients(ctx, restconfig.FromConn(conn), conn, client)
	if err != nil {
		return nil, err
	}
	return &RESTClientGetter{ctx: ctx, configs: connConfigs{conn}, clients: clients}, nil
}

func newGetterClients(ctx context.Context, config *rest.Config, conn *transport.Conn, client *discovery.Client) (*getterClients, error) {
	cached, err := NewDiscovery(ctx, conn, client)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.New(client).RESTMapper(ctx)
	if own, ok := mapper.(contextMapper); ok {
		mapper = getterMapper{own, ctx}
	}
	return &getterClients{config: config, discovery: cached, mapper: mapper}, nil
}

// connect returns the clients over the connection. The first successful call makes them.
func (g *RESTClientGetter) connect() (*getterClients, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clients != nil {
		return g.clients, nil
	}
	config, err := g.configs.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	conn, err := restconfig.ToConn(config)
	if err != nil {
		return nil, err
	}
	g.clients, err = newGetterClients(g.ctx, restconfig.WithConn(config, conn), conn, discovery.New(conn, g.options))
	if err != nil {
		conn.Close()
		return nil, err
	}
	context.AfterFunc(g.ctx, conn.Close)
	return g.clients, nil
}

// ToRESTConfig returns a new copy of the config: see restconfig.FromConn and, for a wrapped getter, restconfig.WithConn.
func (g *RESTClientGetter) ToRESTConfig() (*rest.Config, error) {
	clients, err := g.connect()
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(clients.config), nil
}

// ToDiscoveryClient returns the shared discovery.
func (g *RESTClientGetter) ToDiscoveryClient() (clientgo.CachedDiscoveryInterface, error) {
	clients, err := g.connect()
	if err != nil {
		return nil, err
	}
	return clients.discovery, nil
}

// ToRESTMapper returns the shared mapper. It resolves short names, see restmapper.Mapper.RESTMapper. If no server responds, its
// errors are *url.Error, like the errors of client-go's mapper.
func (g *RESTClientGetter) ToRESTMapper() (meta.RESTMapper, error) {
	clients, err := g.connect()
	if err != nil {
		return nil, err
	}
	return clients.mapper, nil
}

// ToRawKubeConfigLoader returns the loader of the wrapped getter. The config of that loader does not use the connection. A getter
// over a connection alone returns the config of ToRESTConfig and the connection's namespace. Its raw config has the server and
// the namespace, but no credential.
func (g *RESTClientGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return g.configs.ToRawKubeConfigLoader()
}

// connConfigs implements ConfigGetter and clientcmd.ClientConfig for a connection alone.
type connConfigs struct{ conn *transport.Conn }

// contextName is the name of a raw config's context, cluster and user.
const contextName = "anykind"

// ToRESTConfig implements ConfigGetter.
func (c connConfigs) ToRESTConfig() (*rest.Config, error) { return restconfig.FromConn(c.conn), nil }

// ToRawKubeConfigLoader implements ConfigGetter.
func (c connConfigs) ToRawKubeConfigLoader() clientcmd.ClientConfig { return c }

// RawConfig implements clientcmd.ClientConfig.
func (c connConfigs) RawConfig() (clientcmdapi.Config, error) {
	raw := clientcmdapi.NewConfig()
	raw.Clusters[contextName] = &clientcmdapi.Cluster{Server: c.conn.Server()}
	raw.AuthInfos[contextName] = clientcmdapi.NewAuthInfo()
	raw.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: c.conn.Namespace()}
	raw.CurrentContext = contextName
	return *raw, nil
}

// ClientConfig implements clientcmd.ClientConfig.
func (c connConfigs) ClientConfig() (*rest.Config, error) { return c.ToRESTConfig() }

// Namespace implements clientcmd.ClientConfig.
func (c connConfigs) Namespace() (namespace string, overridden bool, err error) {
	return c.conn.Namespace(), false, nil
}

// ConfigAccess implements clientcmd.ClientConfig.
func (c connConfigs) ConfigAccess() clientcmd.ConfigAccess { return clientcmd.NewDefaultPathOptions() }
