package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadGoMod_Parts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.mod")
	require.NoError(t, os.WriteFile(path, []byte("module example.org/a\n\ngo 1.26.0\n\nrequire (\n\texample.org/b v1.0.0\n"+
		"\texample.org/c v1.1.0 // indirect\n)\n\nreplace example.org/b => ./staging/src/example.org/b\n"), 0o600))
	m, err := readGoMod(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, "example.org/a", m.Module.Path)
	assert.Equal(t, "1.26.0", m.Go)
	assert.Equal(t, []requirement{{Path: "example.org/b", Version: "v1.0.0"}, {Path: "example.org/c", Version: "v1.1.0", Indirect: true}}, m.Require)
	require.Len(t, m.Replace, 1)
	assert.Equal(t, "./staging/src/example.org/b", m.Replace[0].New.Path)
	_, err = readGoMod(t.Context(), path+".none")
	assert.Error(t, err)
}

func TestGoMod_Generated(t *testing.T) {
	m := &goMod{Go: "1.26.0", Replace: []replacement{
		{modulePath{"k8s.io/api"}, modulePath{"./staging/src/k8s.io/api"}},
		{modulePath{"example.org/fork"}, modulePath{"example.org/other"}},
	}}
	assert.Equal(t, "module anykind.test/server\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n\nreplace k8s.io/api => k8s.io/api v0.36.3\n",
		m.generated("k8s.io/kubernetes", "v1.36.3"))
}

func TestGoMod_WithoutRequirementsOfOther(t *testing.T) {
	other := &goMod{Require: []requirement{{Path: "example.org/known", Version: "v1.0.0"}}}
	m := &goMod{Module: modulePath{"example.org/a"}, Go: "1.26.0", Require: []requirement{
		{Path: "example.org/known", Version: "v1.2.0"}, {Path: "example.org/own", Version: "v1.1.0"},
		{Path: "example.org/deep", Version: "v1.1.0", Indirect: true},
	}}
	assert.Equal(t, "module example.org/a\n\ngo 1.26.0\n\nrequire example.org/own v1.1.0\n", m.without(other))
}

// What the sandbox has compiled is used again for the same version only.
func TestVersions_KubernetesIsThatOfSandbox(t *testing.T) {
	versions, err := parseVersions(versionList)
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(repository, "sandbox", "internal", "build", "module.go"))
	require.NoError(t, err)
	assert.Contains(t, string(source), `KubernetesVersion = "`+versions["k8s.io/kubernetes"].Version+`"`)
}
