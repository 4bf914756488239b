package main

import (
	"bytes"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPathsLeadToBuiltInAndCustomKinds(t *testing.T) {
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)

	var out bytes.Buffer
	require.NoError(t, namespaces(t.Context(), client, &out))
	assert.Contains(t, out.String(), "namespace default\n")

	out.Reset()
	require.NoError(t, deployment(t.Context(), client, &out))
	assert.Equal(t, "deployment paths-nginx: labels map[tier:front], replicas 3\ndeleted deployments.apps paths-nginx\n", out.String())

	out.Reset()
	require.NoError(t, custom(t.Context(), client, &out))
	assert.Equal(t, "foo my-foo: MODIFIED, bar is \"goodbye\"\ndeleted customresourcedefinitions.apiextensions.k8s.io foos.paths.example.com\n", out.String())
}
