package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func writeCopy(t *testing.T) string {
	t.Helper()
	c, err := clustercopy.Of(
		&unstructured.Object{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop", "uid": "a-uid", "resourceVersion": "77"},
		}},
		&unstructured.Object{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "red", "namespace": "shop", "resourceVersion": "78"},
		}},
	)
	require.NoError(t, err)
	c.Omitted = []clustercopy.Omission{{Version: "v1", Resource: "secrets", Reason: "forbidden"}}
	path := filepath.Join(t.TempDir(), "cluster.copy")
	require.NoError(t, c.WriteFile(path))
	return path
}

func TestStart_ServesCopy(t *testing.T) {
	var stderr bytes.Buffer
	path, stop, err := start(settings{copyFile: writeCopy(t), stderr: &stderr})
	require.NoError(t, err)
	defer stop()
	config, err := transport.Load(t.Context(), &transport.LoadOptions{Path: path})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), config)
	require.NoError(t, err)
	defer client.Close()
	maps, err := client.Resource(t.Context(), "configmaps")
	require.NoError(t, err)
	settings, err := maps.Namespace("shop").Get(t.Context(), "settings", nil)
	require.NoError(t, err)
	assert.Equal(t, "77", settings.GetResourceVersion())
	assert.Equal(t, "apitest: not in the copy: secrets: forbidden\n"+
		"apitest: differs from the cluster: Widget.example.com (1, such as shop/red): absent, since the server can neither find the kind nor define it\n", stderr.String())
}

func TestRun_CopyWithoutFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, run(ctx, []string{"-copy", filepath.Join(t.TempDir(), "none")}, io.Discard, io.Discard), "load a copy: open ")
	require.NoError(t, run(ctx, []string{"-copy", writeCopy(t)}, io.Discard, io.Discard))
}
