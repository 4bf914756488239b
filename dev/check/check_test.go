package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
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
		{"base", []string{"above", "base", "middle", "tested"}},
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
}
