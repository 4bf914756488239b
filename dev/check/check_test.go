package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func testRepository() *repository {
	listed := func(dir string, imports, tests []string) *goPackage {
		p := &goPackage{Dir: "/top/" + dir, Imports: imports, XTestImports: tests}
		p.Module.Dir = "/top"
		return p
	}
	return &repository{root: "/top", packages: map[string]*goPackage{
		"base":   listed("base", nil, nil),
		"middle": listed("middle", []string{"base"}, nil),
		"above":  listed("above", []string{"middle"}, nil),
		"tested": listed("tested", nil, []string{"base"}),
		"user":   listed("user", []string{"tested"}, nil),
	}}
}

func TestRepository_Importers(t *testing.T) {
	for _, test := range []struct {
		changed string
		want    []string
	}{
		{"base", []string{"above", "base", "middle"}},
		{"tested", []string{"tested", "user"}},
		{"above", []string{"above"}},
	} {
		affected := testRepository().importers(map[string]bool{test.changed: true})
		assert.Equal(t, test.want, slices.Sorted(maps.Keys(affected)), test.changed)
	}
}

func TestRepository_ChangedPackages(t *testing.T) {
	for _, test := range []struct {
		file string
		want []string
	}{
		{"base/base.go", []string{"base"}},
		{"base/testdata/deep/case.json", []string{"base"}},
		{"README.md", nil},
		{"elsewhere/x.go", nil},
	} {
		changed := testRepository().changedPackages([]string{test.file})
		assert.Equal(t, test.want, slices.Sorted(maps.Keys(changed)), test.file)
	}
}

func TestRepository_Tested(t *testing.T) {
	r := testRepository()
	assert.Equal(t, []string{"base", "middle", "tested"}, slices.Sorted(maps.Keys(r.tested(map[string]bool{"base": true}))))
	r.packages["middle"].Module.Dir = "/top/other"
	assert.Equal(t, []string{"base", "tested"}, slices.Sorted(maps.Keys(r.tested(map[string]bool{"base": true}))))
	r.packages["tested"].Name = "main"
	assert.Equal(t, []string{"base"}, slices.Sorted(maps.Keys(r.tested(map[string]bool{"base": true}))))
}

func TestRepository_ByDepth(t *testing.T) {
	r := testRepository()
	changed := map[string]bool{"base": true}
	all := map[string]bool{"base": true, "above": true, "middle": true, "tested": true}
	assert.Equal(t, []string{"tested", "middle", "above"}, r.byDepth(all, changed))
}

func TestRepository_WithTests(t *testing.T) {
	all := testRepository().withTests(map[string]bool{"base": true, "middle": true})
	assert.Equal(t, []string{"base", "middle", "tested"}, slices.Sorted(maps.Keys(all)))
}

// The test of below has a type of its own package and of middle, which imports below: both must be compiled with the test's file.
func TestRepository_CheckTypes(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"go.mod":               "module example.com\n\ngo 1.26\n",
		"go.work":              "go 1.26\n\nuse .\n",
		"below/below.go":       "package below\n\ntype Below struct{}\n",
		"below/export_test.go": "package below\n\nfunc New() Below { return Below{} }\n",
		"below/below_test.go": "package below_test\n\nimport (\n\t\"example.com/below\"\n\t\"example.com/middle\"\n)\n\n" +
			"var _ = middle.Of(below.New())\n",
		"middle/middle.go": "package middle\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/below\"\n)\n\n" +
			"func Of(b below.Below) string { return fmt.Sprint(b) }\n",
		"above/above.go": "package above\n\nimport \"example.com/middle\"\n\nvar Of = middle.Of\n",
	}
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	check := func() error {
		r := &repository{root: root}
		require.NoError(t, r.readPackages(t.Context()))
		importers := r.importers(map[string]bool{"example.com/middle": true})
		return r.checkTypes(t.Context(), r.withTests(importers), importers)
	}
	t.Setenv("GOWORK", filepath.Join(root, "go.work"))
	assert.NoError(t, check())
	changed := strings.Replace(files["middle/middle.go"], "Of(b below.Below)", "Print(b below.Below)", 1)
	require.NoError(t, os.WriteFile(filepath.Join(root, "middle/middle.go"), []byte(changed), 0o600))
	assert.EqualError(t, check(), "above/above.go:5:17: undefined: middle.Of\nbelow/below_test.go:8:16: undefined: middle.Of")
}
