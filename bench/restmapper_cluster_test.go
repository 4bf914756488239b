package bench_test

import (
	"encoding/json"
	"testing"

	"github.com/anykind/anykind/internal/sandboxtest"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/tools/clientcmd"
)

func TestEveryWayOfNamingARealServersResourceResolvesAsInKubectl(t *testing.T) {
	path := sandboxtest.Kubeconfig(t)
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: path})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client := clientGoDiscoveryOf(t, config)

	served := &catalogue{}
	for _, root := range []string{"/api", "/apis"} {
		var list apidiscovery.APIGroupDiscoveryList
		body, err := client.RESTClient().Get().AbsPath(root).
			SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").DoRaw(t.Context())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &list))
		served.groups = append(served.groups, list.Items...)
	}
	theirs, _ := clientGoMapper(newInOrder(t, client))
	compareNames(t, served, newMapper(conn), theirs)
}
