package discovery_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/transport"
)

func TestSnapshot_ThreeHundredCRDsEqualKubectl(t *testing.T) {
	conn := sandbox(t)
	cluster.Define(t, asAdministrator(conn), append(corpus.Definitions(t, 300), corpus.Synthetic(t)...))
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, table(apiResources(t)), rows(snapshot, nil))
}

func asAdministrator(conn *transport.Conn) cluster.SendFunc {
	return func(ctx context.Context, method, path, body string) (string, error) {
		response, err := conn.Do(ctx, &transport.Request{Method: method, Path: path, Body: []byte(body), Header: http.Header{
			"Content-Type": {"application/json"},
			"Accept":       {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"},
		}})
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		return string(answer), err
	}
}
