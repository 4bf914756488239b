package discovery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClient_CapabilitiesOfOldServer(t *testing.T) {
	script, client := serving(t, map[string]string{
		"/version": `{"gitVersion":"v1.21.5+vendor"}`,
		"/api":     `{"kind":"APIVersions","versions":[]}`, "/apis": `{"kind":"APIGroupList","groups":[]}`,
		"/api/v1/namespaces/default": "403",
	})
	can, err := client.Capabilities(t.Context())
	require.NoError(t, err)
	for _, capability := range []Capability{can.AggregatedDiscovery, can.ServerSideApply, can.WatchList, can.WebSocketExec, can.PortForwardTunnel, can.CBOR} {
		assert.False(t, capability.Supported)
		assert.NotEmpty(t, capability.Fallback)
	}
	assert.Contains(t, can.WatchList.Reason, "v1.21.5+vendor")

	script.answers["/version"] = `{"gitVersion":"unknown"}`
	_, err = New(client.conn, nil).Capabilities(t.Context())
	require.ErrorContains(t, err, `"unknown"`)
	script.answers["/openapi/v3"] = "{}"
	_, err = client.OpenAPIPaths(t.Context())
	require.ErrorContains(t, err, "is empty")
}

func TestClient_CapabilitiesByVersion(t *testing.T) {
	script, client := serving(t, map[string]string{
		"/api": `{"kind":"APIVersions","versions":[]}`, "/apis": `{"kind":"APIGroupList","groups":[]}`, "/api/v1/namespaces/default": "403",
	})
	for version, want := range map[string]Capabilities{
		"v1.22.0": {ServerSideApply: Capability{Supported: true}},
		"v1.30.9": {ServerSideApply: Capability{Supported: true}},
		"v1.31.0": {ServerSideApply: Capability{Supported: true}, WebSocketExec: Capability{Supported: true}, PortForwardTunnel: Capability{Supported: true}},
		"v1.33.9": {ServerSideApply: Capability{Supported: true}, WebSocketExec: Capability{Supported: true}, PortForwardTunnel: Capability{Supported: true}},
		"v1.34.0": {
			ServerSideApply: Capability{Supported: true}, WebSocketExec: Capability{Supported: true}, PortForwardTunnel: Capability{Supported: true},
			WatchList: Capability{Supported: true},
		},
	} {
		script.answers["/version"] = fmt.Sprintf(`{"gitVersion":%q}`, version)
		can, err := New(client.conn, nil).Capabilities(t.Context())
		require.NoError(t, err)
		for name, supported := range map[string][2]Capability{
			"server-side apply": {want.ServerSideApply, can.ServerSideApply}, "WatchList": {want.WatchList, can.WatchList},
			"exec": {want.WebSocketExec, can.WebSocketExec}, "port-forward": {want.PortForwardTunnel, can.PortForwardTunnel},
		} {
			assert.Equal(t, supported[0].Supported, supported[1].Supported, "%s: %s", version, name)
		}
	}
}

func TestClient_ServerInfoErrorsAreShort(t *testing.T) {
	script, client := serving(t, map[string]string{"/version": `{"gitVersion":"` + strings.Repeat("x", 1<<20) + `"}`})
	_, err := client.Capabilities(t.Context())
	require.ErrorContains(t, err, "server version")
	assert.Less(t, len(err.Error()), 500)

	script.answers["/openapi/v3"] = "{\"paths\":\x1b[31m"
	_, err = client.OpenAPIPaths(t.Context())
	require.ErrorContains(t, err, "decode the index")
	assert.NotContains(t, err.Error(), "\x1b")
}
