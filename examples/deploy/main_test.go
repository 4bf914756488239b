package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDeploy_AppliesAndPrunes(t *testing.T) {
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	cfg.Namespace = namespace
	folder := t.TempDir()
	for _, name := range []string{"a", "b"} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	run := func() string {
		t.Helper()
		var out strings.Builder
		require.NoError(t, deploy(t.Context(), cfg, "web", folder, &out))
		return strings.ReplaceAll(out.String(), namespace, "shop")
	}
	assert.Contains(t, run(), `created ConfigMap "shop/a"`)
	require.NoError(t, os.Remove(filepath.Join(folder, "b.yaml")))
	assert.Equal(t, `unchanged ConfigMap "shop/a" 
pruned ConfigMap "shop/b" left the set
ConfigMap "shop/a" Current: every object of this kind is
`, run())
}
