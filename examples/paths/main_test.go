package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPaths(t *testing.T) {
	c := client.Connect(t, "admin")
	var out bytes.Buffer
	require.NoError(t, listNamespaces(t.Context(), c, &out))
	assert.Contains(t, out.String(), "namespace default\n")

	out.Reset()
	require.NoError(t, useDeployment(t.Context(), c, &out))
	assert.Equal(t, "deployment paths-nginx: labels map[tier:front], replicas 3\ndeleted deployments.apps paths-nginx\n", out.String())

	out.Reset()
	require.NoError(t, useCustomKind(t.Context(), c, &out))
	assert.Equal(t, "foo my-foo: MODIFIED, bar is \"goodbye\"\ndeleted customresourcedefinitions.apiextensions.k8s.io foos.paths.example.com\n", out.String())
}
