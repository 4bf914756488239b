package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNeat_LeavesOutServerFields(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	service, err := client.Resource(t, admin, "services").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(80)}}},
	}}, nil)
	require.NoError(t, err)
	text, err := unstructured.EncodeYAML(service)
	require.NoError(t, err)
	neat := client.Program(t, namespace)
	output, err := neat(t.Context(), string(text))
	require.NoError(t, err)
	assert.Contains(t, output, "app: web\n")
	for _, field := range []string{"clusterIP", "uid", "resourceVersion", "managedFields", "status"} {
		assert.NotContains(t, output, field)
	}
	_, err = neat(t.Context(), "kind: [")
	require.Error(t, err)
}
