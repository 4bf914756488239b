package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExplain_EqualsKubectl(t *testing.T) {
	t.Setenv("KUBECONFIG", cluster.Kubeconfig(t))
	for _, target := range []string{"deploy", "pods.spec.containers.ports"} {
		name, field, _ := strings.Cut(target, ".")
		want, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), "explain", target, "--cache-dir", t.TempDir()).Output()
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, explain(t.Context(), name, field, false, &got))
		assert.Equal(t, string(want), got.String())
	}
	var details bytes.Buffer
	require.NoError(t, explain(t.Context(), "pods", "spec.containers", true, &details))
	assert.Contains(t, details.String(), "DETAILS:\n    x-kubernetes-list-map-keys: name\n")
	var unknown *schema.UnknownFieldError
	require.ErrorAs(t, explain(t.Context(), "pods", "spec.container", false, &details), &unknown)
	assert.Contains(t, unknown.Suggestions, "containers")
}

func TestWritePages(t *testing.T) {
	var pages bytes.Buffer
	require.NoError(t, writePages(t.Context(), "../generic/foo.yaml", &pages))
	assert.Regexp(t, "^# Foo\n\n`generic.example.com/v1`\n(?s:.*)\n\\| `spec.replicas` \\| `integer` \\| .*\n", pages.String())
}
