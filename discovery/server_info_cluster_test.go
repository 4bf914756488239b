package discovery_test

import (
	"testing"

	"github.com/anykind/anykind/discovery"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClient_CapabilitiesOfRealServer(t *testing.T) {
	client := discovery.New(sandbox(t), nil)
	can, err := client.Capabilities(t.Context())
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+`, can.Version)
	for name, capability := range map[string]discovery.Capability{
		"aggregated discovery": can.AggregatedDiscovery, "server-side apply": can.ServerSideApply, "watch list": can.WatchList,
		"exec": can.WebSocketExec, "port-forward": can.PortForwardTunnel,
	} {
		assert.True(t, capability.Supported, name)
		assert.NotEmpty(t, capability.Reason, name)
		assert.NotEmpty(t, capability.Fallback, name)
	}
	assert.False(t, can.CBOR.Supported, "an alpha feature, off by default")
	again, err := client.Capabilities(t.Context())
	require.NoError(t, err)
	assert.Same(t, can, again)
}

func TestClient_OpenAPIPathsOfRealServer(t *testing.T) {
	index, err := discovery.New(sandbox(t), nil).OpenAPIPaths(t.Context())
	require.NoError(t, err)
	assert.Regexp(t, `^/openapi/v3/apis/apps/v1\?hash=`, index["apis/apps/v1"])
	assert.Contains(t, index, "api/v1")
}
