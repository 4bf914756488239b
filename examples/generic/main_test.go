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

func TestFoosLiveAndLeaveNothingBehind(t *testing.T) {
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)

	var out bytes.Buffer
	require.NoError(t, generic(t.Context(), client, &out))
	assert.Equal(t, `defined generic.example.com/v1, Kind=Foo
created Foo baz: {Info:unpatched baz Replicas:1}
patched the status of baz: {IsBad:true}
applied qux: {Info: Replicas:2}
updated qux: {Info: Replicas:3}
listed baz: {Info:unpatched baz Replicas:1}
listed qux: {Info: Replicas:3}
qux is green, which the struct knows nothing of
deleted baz
`, out.String())

	crds, err := client.Resource(t.Context(), "crd")
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "foos.generic.example.com", dynamic.Gone())
	require.NoError(t, err)
}
