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

func TestGet_FormatsOfAnyKind(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	for resource, name := range map[string]string{"configmaps": "prices", "serviceaccounts": "seller"} {
		_, err := client.Resource(t, admin, resource).Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "shop"}},
		}}, nil)
		require.NoError(t, err)
	}
	get := client.Program(t, namespace)
	for _, c := range []struct{ args, want string }{
		{"", `(?s)^NAME +DATA +AGE\nconfigmap/prices +0 .*\n\nNAME .*\nserviceaccount/seller `},
		{"-o=name", `^configmap/prices\nserviceaccount/seller\n$`},
		{"-o=wide", `(?s)configmap/prices.*serviceaccount/seller`},
		{"-o=yaml", `(?s)^apiVersion: v1\nitems:\n- apiVersion: v1\n.*  kind: ServiceAccount\n.*kind: List\n`},
		{"-o=json", `(?s)^\{\n    "apiVersion": "v1",\n    "items": \[.*"name": "seller"`},
		{"-o=jsonpath={.items[*].metadata.name}", `^prices seller$`},
		{"-o=custom-columns=N:.metadata.name", `^N\nprices\nseller\n$`},
		{"-o=go-template={{range .items}}{{.kind}} {{end}}", `^ConfigMap ServiceAccount $`},
		{"-o=jq=.kind", `^ConfigMap\nServiceAccount\n$`},
		{"--where=.kind == \"ConfigMap\"", `^NAME +DATA +AGE\nconfigmap/prices +0 +\S+\n$`},
	} {
		args := []string{"cm,sa", "-l", "app=shop"}
		if c.args != "" {
			args = append(args, c.args)
		}
		output, err := get(t.Context(), "", args...)
		require.NoError(t, err)
		assert.Regexp(t, c.want, output, c.args)
	}
	output, err := get(t.Context(), "", "cm", "prices", "-o", "jsonpath={.kind}")
	require.NoError(t, err)
	assert.Equal(t, "ConfigMap", output)
	_, err = get(t.Context(), "", "cm", "none")
	require.ErrorContains(t, err, `Error from server (NotFound): configmaps "none" not found`)
	_, err = get(t.Context(), "", "cms")
	require.ErrorContains(t, err, "the server doesn't have a resource type \"cms\"")
}
