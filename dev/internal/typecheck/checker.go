package typecheck

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// maxErrors limits the errors of a package.
const maxErrors = 10

// result is a package of a check. done is closed at the end of its check.
type result struct {
	listed  *listedPackage
	imports map[string]*result // by the path in the source
	done    chan struct{}
	types   *types.Package
	errs    []error
}

// checkAll checks the packages concurrently and returns their errors. Workers begin in the order of the packages: a worker
// waits only for packages already begun by a worker.
func (c *Checker) checkAll(ctx context.Context, packages []*listedPackage) error {
	results, unchecked := c.resolve(packages)
	work := make(chan *result)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for r := range work {
				c.check(r)
				close(r.done)
			}
		})
	}
	for _, r := range unchecked {
		if ctx.Err() != nil {
			break
		}
		work <- r
	}
	close(work)
	workers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var errs []error
	for _, r := range results {
		errs = append(errs, r.errs...)
	}
	return errors.Join(errs...)
}

// resolve returns the results of the packages, and the subset unknown from earlier checks.
func (c *Checker) resolve(packages []*listedPackage) (results, unchecked []*result) {
	byPath := map[string]*result{}
	for _, listed := range packages {
		r := &result{listed: listed, imports: map[string]*result{}, done: make(chan struct{})}
		for _, path := range listed.Imports {
			r.imports[path] = byPath[path]
		}
		for path, mapped := range listed.ImportMap {
			r.imports[path] = byPath[mapped]
		}
		key := r.key()
		if known := c.known[key]; known != nil {
			r = known
		} else {
			c.known[key] = r
			unchecked = append(unchecked, r)
		}
		byPath[listed.ImportPath] = r
		results = append(results, r)
	}
	return results, unchecked
}

// key returns a text with all inputs of the result.
func (r *result) key() string {
	text := fmt.Sprintf("%s %s %q %s", r.listed.ImportPath, r.listed.Dir, r.listed.GoFiles, r.listed.goVersion())
	for _, path := range slices.Sorted(maps.Keys(r.imports)) {
		text += fmt.Sprintf(" %s=%p", path, r.imports[path])
	}
	return text
}

// check checks a package after its imports.
func (c *Checker) check(r *result) {
	if r.listed.ImportPath == "unsafe" {
		r.types = types.Unsafe
		return
	}
	report := func(err error) {
		if len(r.errs) < maxErrors {
			r.errs = append(r.errs, err)
		}
	}
	var files []*ast.File
	for _, name := range r.listed.GoFiles {
		file, err := parser.ParseFile(c.fset, filepath.Join(r.listed.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			report(err)
		}
		if file != nil {
			files = append(files, file)
		}
	}
	config := types.Config{
		Importer: r, Sizes: c.sizes, IgnoreFuncBodies: r.listed.Standard, GoVersion: r.listed.goVersion(), Error: report,
	}
	r.types, _ = config.Check(r.listed.ImportPath, c.fset, files, nil) // reported
}

// Import returns the types of a package imported by r. It waits for the end of the package's check.
func (r *result) Import(path string) (*types.Package, error) {
	imported := r.imports[path]
	if imported == nil {
		return nil, fmt.Errorf("package %s is not in the output of go list", path)
	}
	<-imported.done
	return imported.types, nil
}
