package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// typeChecker checks the types of packages from their source, where go vet would first compile all their dependencies again. It is the
// importer of the packages that it checks.
type typeChecker struct {
	repository *repository
	fset       *token.FileSet
	parsed     map[string]*ast.File
	exports    types.Importer            // from the build cache
	fromSource map[string]bool           // packages that exports must not have: the changed packages, and all packages compiled with them
	checked    map[string]*types.Package // of fromSource, by path
	report     func(error)
}

// checkTypes returns the errors of packages and of their tests. fromSource has the changed packages and their importers.
func (r *repository) checkTypes(ctx context.Context, packages, fromSource map[string]bool) error {
	files, err := r.exportFiles(ctx, packages, fromSource)
	if err != nil {
		return err
	}
	c := &typeChecker{
		repository: r, fset: token.NewFileSet(), parsed: map[string]*ast.File{}, fromSource: fromSource, checked: map[string]*types.Package{},
	}
	c.exports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" { // an import of a package that only a test's copy of a package needs from source
			file, err := output(ctx, r.root, "go", "list", "-export", "-f", "{{.Export}}", path)
			if err != nil {
				return nil, err
			}
			files[path] = strings.TrimSpace(file)
		}
		return os.Open(files[path])
	})
	found := map[string]bool{} // a package may be checked twice
	c.report = func(err error) { found[strings.TrimPrefix(err.Error(), r.root+"/")] = true }
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		if fromSource[path] {
			_, _ = c.Import(path) // reported
		}
		c.checkTests(path)
	}
	if len(found) == 0 {
		return nil
	}
	return errors.New(strings.Join(slices.Sorted(maps.Keys(found)), "\n"))
}

// exportFiles returns the files of the build cache with the types of imported packages, by import path.
func (r *repository) exportFiles(ctx context.Context, packages, fromSource map[string]bool) (map[string]string, error) {
	imported := map[string]bool{}
	for path := range packages {
		listed := r.packages[path]
		for _, path := range slices.Concat(listed.Imports, listed.TestImports, listed.XTestImports) {
			imported[path] = true
		}
	}
	for path := range fromSource {
		for _, path := range r.packages[path].Imports {
			imported[path] = true
		}
	}
	maps.DeleteFunc(imported, func(path string, _ bool) bool { return fromSource[path] || path == "unsafe" || path == "C" })
	list, err := output(ctx, r.root, "go", append([]string{"list", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, slices.Sorted(maps.Keys(imported))...)...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(list) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files, nil
}

// Import returns the types of a package.
func (c *typeChecker) Import(path string) (*types.Package, error) {
	if !c.fromSource[path] {
		return c.exports.Import(path)
	}
	if c.checked[path] == nil {
		c.checked[path] = c.check(path, c.repository.packages[path].GoFiles)
	}
	return c.checked[path], nil
}

// checkTests checks the tests of a package. Tests in their own package see the package with its test files, as does every package
// that they import.
func (c *typeChecker) checkTests(path string) {
	listed := c.repository.packages[path]
	external := *c
	if len(listed.TestGoFiles) > 0 {
		importers := c.repository.importers(map[string]bool{path: true})
		external.fromSource = maps.Clone(c.fromSource)
		maps.Copy(external.fromSource, importers)
		external.checked = maps.Clone(c.checked)
		maps.DeleteFunc(external.checked, func(checked string, _ *types.Package) bool { return importers[checked] })
		external.checked[path] = c.check(path, slices.Concat(listed.GoFiles, listed.TestGoFiles))
	}
	if len(listed.XTestGoFiles) > 0 {
		external.check(path+"_test", listed.XTestGoFiles)
	}
}

// check checks the files of a package. path may end with _test.
func (c *typeChecker) check(path string, names []string) *types.Package {
	folder := c.repository.packages[strings.TrimSuffix(path, "_test")].Dir
	files := make([]*ast.File, len(names))
	for i, name := range names {
		file := filepath.Join(folder, name)
		if c.parsed[file] == nil {
			parsed, err := parser.ParseFile(c.fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				c.report(err)
			}
			c.parsed[file] = parsed
		}
		files[i] = c.parsed[file]
	}
	config := types.Config{Importer: c, Error: c.report, FakeImportC: true}
	checked, err := config.Check(path, c.fset, files, nil)
	if checked == nil {
		c.report(fmt.Errorf("check the types of %s: %w", path, err))
	}
	return checked
}
