package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// repository has the packages of all modules in the workspace.
type repository struct {
	root     string
	packages map[string]*goPackage
}

// goPackage is a package as go list prints it.
type goPackage struct {
	ImportPath   string
	Name         string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Module       struct{ Dir string }
}

// changedFiles returns the files changed since the merge base with a branch, relative to the root.
func (r *repository) changedFiles(ctx context.Context, branch string) ([]string, error) {
	base, err := output(ctx, r.root, "git", "merge-base", branch, "HEAD")
	if err != nil {
		return nil, err
	}
	tracked, err := output(ctx, r.root, "git", "diff", "--name-only", strings.TrimSpace(base))
	if err != nil {
		return nil, err
	}
	untracked, err := output(ctx, r.root, "git", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.Fields(tracked + untracked), nil
}

// readPackages lists the packages of every module in the workspace.
func (r *repository) readPackages(ctx context.Context) error {
	folders, err := output(ctx, r.root, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	patterns := []string{"list", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Module"}
	for _, folder := range strings.Fields(folders) {
		patterns = append(patterns, filepath.Join(folder, "..."))
	}
	list, err := output(ctx, r.root, "go", patterns...)
	if err != nil {
		return err
	}
	r.packages = map[string]*goPackage{}
	for decoder := json.NewDecoder(strings.NewReader(list)); ; {
		listed := &goPackage{}
		if err := decoder.Decode(listed); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r.packages[listed.ImportPath] = listed
	}
}

// changedPackages returns the packages of the files: of each file, the package in the nearest folder upwards, so that testdata
// and templates count.
func (r *repository) changedPackages(files []string) map[string]bool {
	byFolder := map[string]string{}
	for path, listed := range r.packages {
		byFolder[listed.Dir] = path
	}
	changed := map[string]bool{}
	for _, file := range files {
		for folder := filepath.Dir(filepath.Join(r.root, file)); len(folder) > len(r.root); folder = filepath.Dir(folder) {
			if path := byFolder[folder]; path != "" {
				changed[path] = true
				break
			}
		}
	}
	return changed
}

// importers returns the packages and all their importers, without the imports of tests.
func (r *repository) importers(changed map[string]bool) map[string]bool {
	importedBy := map[string][]string{}
	for path, listed := range r.packages {
		for _, imported := range listed.Imports {
			importedBy[imported] = append(importedBy[imported], path)
		}
	}
	affected := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if affected[path] {
			return
		}
		affected[path] = true
		for _, importer := range importedBy[path] {
			visit(importer)
		}
	}
	for path := range changed {
		visit(path)
	}
	return affected
}

// withTests returns the packages, and the packages with tests that import them.
func (r *repository) withTests(packages map[string]bool) map[string]bool {
	all := maps.Clone(packages)
	for path, listed := range r.packages {
		if containsAny(packages, slices.Concat(listed.TestImports, listed.XTestImports)) {
			all[path] = true
		}
	}
	return all
}

// tested returns the changed packages and their direct importers in the same modules. Imports of tests count, but not programs: their
// types are checked.
func (r *repository) tested(changed map[string]bool) map[string]bool {
	modules := map[string]bool{}
	for path := range changed {
		modules[r.packages[path].Module.Dir] = true
	}
	tested := maps.Clone(changed)
	for path, listed := range r.packages {
		isImporter := containsAny(changed, slices.Concat(listed.Imports, listed.TestImports, listed.XTestImports))
		if isImporter && listed.Name != "main" && modules[listed.Module.Dir] {
			tested[path] = true
		}
	}
	return tested
}

// byDepth returns the packages without the changed packages. A package with few changed packages below it comes first, because fewer
// packages must be compiled for its tests.
func (r *repository) byDepth(packages, changed map[string]bool) []string {
	affected := r.importers(changed)
	below := map[string]int{}
	for path := range affected {
		for importer := range r.importers(map[string]bool{path: true}) {
			below[importer]++
		}
	}
	for path := range packages {
		if listed := r.packages[path]; !affected[path] {
			for _, imported := range slices.Concat(listed.TestImports, listed.XTestImports) {
				below[path] = max(below[path], below[imported])
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(packages), func(a, b string) int { return cmp.Or(below[a]-below[b], strings.Compare(a, b)) })
	return slices.DeleteFunc(sorted, func(path string) bool { return changed[path] })
}

// containsAny reports whether packages has one of the imports.
func containsAny(packages map[string]bool, imports []string) bool {
	return slices.ContainsFunc(imports, func(path string) bool { return packages[path] })
}
