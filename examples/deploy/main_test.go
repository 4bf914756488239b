package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDeploy_AppliesAndPrunes(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	deploy := client.Program(t, namespace)
	folder := t.TempDir()
	for _, name := range []string{"a", "b"} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	output, err := deploy(t.Context(), "", "web", folder)
	require.NoError(t, err)
	assert.Contains(t, output, `created ConfigMap "`+namespace+`/a"`)
	require.NoError(t, os.Remove(filepath.Join(folder, "b.yaml")))
	output, err = deploy(t.Context(), "", "web", folder)
	require.NoError(t, err)
	assert.Equal(t, `unchanged ConfigMap "`+namespace+`/a" `+"\n"+`pruned ConfigMap "`+namespace+`/b" left the set`+"\n", output)
	_, err = client.Resource(t, admin, "configmaps").Namespace(namespace).Get(t.Context(), "b", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	require.NoError(t, os.Remove(filepath.Join(folder, "a.yaml")))
	_, err = deploy(t.Context(), "", "web", folder)
	require.Error(t, err, "an empty folder is a mistake, and prunes nothing")
	_, err = deploy(t.Context(), "")
	require.ErrorContains(t, err, "usage: deploy NAME FOLDER")
}
