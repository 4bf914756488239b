package clientgo

import (
	"context"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgo "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// RESTClientGetter implements cli-runtime's genericclioptions.RESTClientGetter and resource.RESTClientGetter, which
// kubectl plugins, resource.NewBuilder and Helm take, over a connection. It is safe for concurrent use.
type RESTClientGetter struct {
	conn      *transport.Conn
	discovery *CachedDiscovery
	mapper    meta.ResettableRESTMapper
}

// NewRESTClientGetter returns a RESTClientGetter of a connection and a discovery client of the same server. Calls without a
// context of their own, such as those of the mapper, use ctx.
func NewRESTClientGetter(ctx context.Context, conn *transport.Conn, client *discovery.Client) (*RESTClientGetter, error) {
	cached, err := NewDiscovery(ctx, conn, client)
	if err != nil {
		return nil, err
	}
	return &RESTClientGetter{conn: conn, discovery: cached, mapper: restmapper.New(client).RESTMapper(ctx)}, nil
}

// ToRESTConfig returns a config of the caller's own: see restconfig.FromConn.
func (g *RESTClientGetter) ToRESTConfig() (*rest.Config, error) {
	return restconfig.FromConn(g.conn), nil
}

// ToDiscoveryClient returns the discovery, which is shared.
func (g *RESTClientGetter) ToDiscoveryClient() (clientgo.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

// ToRESTMapper returns the mapper, which is shared and resolves short names: see restmapper.Mapper.RESTMapper.
func (g *RESTClientGetter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader returns a loader whose config is that of ToRESTConfig and whose namespace is the connection's. Its raw
// config has the server and the namespace, and no credential.
func (g *RESTClientGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig { return loader{g} }

// loader implements clientcmd.ClientConfig.
type loader struct{ getter *RESTClientGetter }

// contextName is the name of a raw config's context, cluster and user.
const contextName = "anykind"

// RawConfig implements clientcmd.ClientConfig.
func (l loader) RawConfig() (clientcmdapi.Config, error) {
	raw := clientcmdapi.NewConfig()
	raw.Clusters[contextName] = &clientcmdapi.Cluster{Server: l.getter.conn.Server()}
	raw.AuthInfos[contextName] = clientcmdapi.NewAuthInfo()
	raw.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: l.getter.conn.Namespace()}
	raw.CurrentContext = contextName
	return *raw, nil
}

// ClientConfig implements clientcmd.ClientConfig.
func (l loader) ClientConfig() (*rest.Config, error) { return l.getter.ToRESTConfig() }

// Namespace implements clientcmd.ClientConfig. The namespace does not count as one that a flag requires of every object.
func (l loader) Namespace() (namespace string, overridden bool, err error) {
	return l.getter.conn.Namespace(), false, nil
}

// ConfigAccess implements clientcmd.ClientConfig.
func (l loader) ConfigAccess() clientcmd.ConfigAccess { return clientcmd.NewDefaultPathOptions() }
