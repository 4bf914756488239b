package discoverytest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	cgdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	cgrestmapper "k8s.io/client-go/restmapper"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// Connect returns anykind's connection to the server.
func Connect(tb testing.TB, server *Server) *transport.Conn {
	tb.Helper()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	return conn
}

// NewMapper returns anykind's mapper over a connection.
func NewMapper(conn *transport.Conn) *restmapper.Mapper {
	return restmapper.New(discovery.New(conn, nil))
}

// ClientGoMapper returns kubectl's mapper: a deferred mapper over a cache, with short names.
func ClientGoMapper(client cgdiscovery.DiscoveryInterface) (meta.RESTMapper, cgdiscovery.CachedDiscoveryInterface) {
	cached := memory.NewMemCacheClient(client)
	return cgrestmapper.NewShortcutExpander(cgrestmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil), cached
}

// InOrder hides from client-go's memory cache that discovery is aggregated. It iterates over aggregated groups in a map,
// and so resolves a short name of several groups to any of them; kubectl's disk cache keeps the order.
type InOrder struct {
	cgdiscovery.DiscoveryInterface
	resources map[schema.GroupVersion]*metav1.APIResourceList
}

// NewInOrder reads all groups of client.
func NewInOrder(tb testing.TB, client *cgdiscovery.DiscoveryClient) InOrder {
	tb.Helper()
	_, resources, _, err := client.GroupsAndMaybeResources()
	require.NoError(tb, err)
	return InOrder{DiscoveryInterface: client, resources: resources}
}

// ServerResourcesForGroupVersion returns the resources in the order of the server.
func (d InOrder) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return nil, err
	}
	return d.resources[gv], nil
}

// ClientGoDiscovery returns client-go's discovery client of the server.
func ClientGoDiscovery(tb testing.TB, server *Server) *cgdiscovery.DiscoveryClient {
	tb.Helper()
	return ClientGoDiscoveryOf(tb, &rest.Config{Host: server.URL, QPS: -1})
}

// ClientGoDiscoveryOf returns a client. The end of the test closes its connections.
func ClientGoDiscoveryOf(tb testing.TB, config *rest.Config) *cgdiscovery.DiscoveryClient {
	tb.Helper()
	http, err := rest.HTTPClientFor(config)
	require.NoError(tb, err)
	tb.Cleanup(func() { utilnet.CloseIdleConnectionsFor(http.Transport) })
	client, err := cgdiscovery.NewDiscoveryClientForConfigAndClient(config, http)
	require.NoError(tb, err)
	return client
}

// KubectlResolves resolves a name as kubectl does (cli-runtime, resource.Builder.mappingFor).
func KubectlResolves(mapper meta.RESTMapper, name string) (*meta.RESTMapping, error) {
	gvr, groupResource := schema.ParseResourceArg(name)
	var gvk schema.GroupVersionKind
	if gvr != nil {
		gvk, _ = mapper.KindFor(*gvr)
	}
	if gvk.Empty() {
		gvk, _ = mapper.KindFor(groupResource.WithVersion(""))
	}
	if !gvk.Empty() {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	full, groupKind := schema.ParseKindArg(name)
	if full != nil {
		if mapping, err := mapper.RESTMapping(full.GroupKind(), full.Version); err == nil {
			return mapping, nil
		}
	}
	return mapper.RESTMapping(groupKind)
}

// ClientGoCached returns client-go's discovery client with kubectl's disk cache in dir.
func ClientGoCached(tb testing.TB, server, dir string) *disk.CachedDiscoveryClient {
	tb.Helper()
	folder := filepath.Join(dir, "discovery", strings.ReplaceAll(strings.TrimPrefix(server, "http://"), ":", "_"))
	client, err := disk.NewCachedDiscoveryClientForConfig(&rest.Config{Host: server, QPS: -1}, folder, "", 6*time.Hour)
	require.NoError(tb, err)
	return client
}
