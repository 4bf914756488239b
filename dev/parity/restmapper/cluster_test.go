package restmapper_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/dev/parity/discoverytest"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/transport"
)

const aggregatedForm = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// TestMapper_RealServersNamesAsKubectl resolves every name of a real server with 300 definitions of public projects.
func TestMapper_RealServersNamesAsKubectl(t *testing.T) {
	path := cluster.Kubeconfig(t)
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: path})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	cluster.Define(t, func(ctx context.Context, method, path, body string) (string, error) {
		response, err := conn.Do(ctx, &transport.Request{Method: method, Path: path, Body: []byte(body), Header: http.Header{
			"Content-Type": {"application/json"}, "Accept": {aggregatedForm + ",application/json"},
		}})
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}, append(corpus.Definitions(t, 300), corpus.Synthetic(t)...))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client := discoverytest.ClientGoDiscoveryOf(t, config)

	served := &discoverytest.Catalog{}
	for _, root := range []string{"/api", "/apis"} {
		var list apidiscovery.APIGroupDiscoveryList
		body, err := client.RESTClient().Get().AbsPath(root).
			SetHeader("Accept", aggregatedForm).DoRaw(t.Context())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &list))
		served.Groups = append(served.Groups, list.Items...)
	}
	theirs, _ := discoverytest.ClientGoMapper(discoverytest.NewInOrder(t, client))
	compareNames(t, served, offlineMapper(t, conn), theirs)
}
