package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDownload_ComparesChecksum(t *testing.T) {
	// This module's tests need it, so that it is in the module cache.
	const module, number, sum = "go.uber.org/goleak", "v1.3.0", "h1:2K3zAYmnTNqV73imy9J1T3WC+gmCePx2hEGkimedGto="
	dir, err := download(t.Context(), module, version{number, sum})
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(dir, "go.mod"))
	_, err = download(t.Context(), module, version{number, "h1:other="})
	assert.EqualError(t, err, module+"@"+number+": checksum "+sum+", versions.txt has h1:other=")
}

func TestUpstream_CopyMakesFilesWritable(t *testing.T) {
	source := t.TempDir()
	for _, name := range []string{"go.mod", "p/p.go", "p/p_test.go", "p/testdata/TestA/request", "q/q_test.go"} {
		path := filepath.Join(source, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o444))
	}
	for name, c := range map[string]struct {
		upstream upstream
		want     string
	}{
		"whole module": {upstream{}, "go.mod p/p.go p/p_test.go p/testdata/TestA/request q/q_test.go"},
		"tests":        {upstream{name: "u", module: "k8s.io/client-go", tests: []string{"p"}}, "go.mod p/p_test.go p/testdata/TestA/request"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, c.upstream.copy(source, dir))
			var names []string
			require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
				require.NoError(t, err)
				if info.Mode().IsRegular() {
					name, err := filepath.Rel(dir, path)
					require.NoError(t, err)
					names = append(names, filepath.ToSlash(name))
					require.NoError(t, os.WriteFile(path, nil, 0o600))
				}
				return nil
			}))
			assert.Equal(t, c.want, strings.Join(names, " "))
		})
	}
}

func TestUpstream_NestedModulesArePublished(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module sigs.k8s.io/cluster-api\n\ngo 1.26.0\n\n"+
		"replace sigs.k8s.io/cluster-api/api => ./api\n\nreplace example.org/fork => example.org/other v1.0.0\n"), 0o600))
	edits, err := (&upstream{module: "sigs.k8s.io/cluster-api"}).nestedModules(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"-replace=sigs.k8s.io/cluster-api/api=sigs.k8s.io/cluster-api/api@v1.14.2"}, edits)
}

func TestUpstream_KeyDependsOnInputs(t *testing.T) {
	one := &upstream{name: "client-go", patches: []patch{replaceText{file: "a", old: "b", new: "c"}}}
	two := &upstream{name: "client-go", patches: []patch{replaceText{file: "a", old: "b", new: "d"}}}
	first, err := one.key(version{}, "/root", "")
	require.NoError(t, err)
	again, err := one.key(version{}, "/root", "")
	require.NoError(t, err)
	other, err := two.key(version{}, "/root", "")
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
	raised, err := one.key(version{}, "/root", "require example.org/a v1.0.0")
	require.NoError(t, err)
	assert.NotEqual(t, first, raised)
}

func TestWorkspaceGoMod_VersionsOfTests(t *testing.T) {
	goMod, err := workspaceGoMod(t.Context(), repository)
	require.NoError(t, err)
	versions, err := parseVersions(versionList)
	require.NoError(t, err)
	assert.Contains(t, goMod, "\nrequire k8s.io/client-go "+versions["k8s.io/client-go"].Version+"\n", "suites compile the client-go of other tests")
	assert.Contains(t, goMod, "\nrequire golang.org/x/net v")
	assert.NotContains(t, goMod, anykindModule)
}

func TestRequireWorkspace_OnlyRaises(t *testing.T) {
	dir := t.TempDir()
	goMod := func(name, requirements string) string { return "module " + name + "\n\ngo 1.26.0\n\n" + requirements }
	// Modules of this module's tests, so that they are in the module cache.
	main := goMod("example.org/main", "require github.com/stretchr/testify v1.8.0\n\nrequire go.uber.org/goleak v1.3.0\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(main), 0o600))
	workspace := goMod(workspaceModule, "require github.com/stretchr/testify v1.12.1\n\nrequire go.uber.org/goleak v1.2.0\n")
	require.NoError(t, requireWorkspace(t.Context(), dir, workspace))
	m, err := readGoMod(t.Context(), filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, m.Require, requirement{Path: "github.com/stretchr/testify", Version: "v1.12.1"})
	assert.Contains(t, m.Require, requirement{Path: "go.uber.org/goleak", Version: "v1.3.0"})
}

func TestIntroduction_CountsChangedAssertions(t *testing.T) {
	dropped := 0
	respelled := 0
	for _, p := range controllerRuntime.patches {
		switch p := p.(type) {
		case dropAssertions:
			dropped += p.count
		case replaceText:
			if strings.HasSuffix(p.file, "restmapper_test.go") {
				respelled += p.count
			}
		}
	}
	assert.Contains(t, introduction, fmt.Sprintf("%d assertions of the number", dropped))
	assert.Contains(t, introduction, fmt.Sprintf(": %d assertions.", respelled))
}
