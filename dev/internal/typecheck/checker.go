package typecheck

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"runtime"
	"sync"
)

// maxErrors limits the errors of a package.
const maxErrors = 10

// checker checks packages concurrently, each after its dependencies.
type checker struct {
	fset     *token.FileSet
	sizes    types.Sizes
	packages []*listedPackage
	results  map[string]*result // by import path
}

// result is a checked package. done is closed at the end of its check.
type result struct {
	done  chan struct{}
	types *types.Package
	errs  []error
}

func newChecker(packages []*listedPackage, goarch string) *checker {
	c := &checker{
		fset: token.NewFileSet(), sizes: types.SizesFor("gc", goarch), packages: packages,
		results: map[string]*result{"unsafe": {done: make(chan struct{}), types: types.Unsafe}},
	}
	close(c.results["unsafe"].done)
	for _, listed := range packages {
		if listed.ImportPath != "unsafe" {
			c.results[listed.ImportPath] = &result{done: make(chan struct{})}
		}
	}
	return c
}

// checkAll returns the errors of all packages. Workers take the packages in the order of c.packages, so that a worker waits only
// for packages of other workers.
func (c *checker) checkAll(ctx context.Context) error {
	work := make(chan *listedPackage)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for listed := range work {
				r := c.results[listed.ImportPath]
				c.check(listed, r)
				close(r.done)
			}
		})
	}
	for _, listed := range c.packages {
		if listed.ImportPath != "unsafe" && ctx.Err() == nil {
			work <- listed
		}
	}
	close(work)
	workers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var errs []error
	for _, listed := range c.packages {
		errs = append(errs, c.results[listed.ImportPath].errs...)
	}
	return errors.Join(errs...)
}

// check checks a package after its imports.
func (c *checker) check(listed *listedPackage, r *result) {
	report := func(err error) {
		if len(r.errs) < maxErrors {
			r.errs = append(r.errs, err)
		}
	}
	var files []*ast.File
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(c.fset, filepath.Join(listed.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			report(err)
		}
		if file != nil {
			files = append(files, file)
		}
	}
	config := types.Config{
		Importer: imports{c, listed}, Sizes: c.sizes, IgnoreFuncBodies: listed.Standard, Error: report,
	}
	if listed.Module != nil && listed.Module.GoVersion != "" {
		config.GoVersion = "go" + listed.Module.GoVersion
	}
	r.types, _ = config.Check(listed.ImportPath, c.fset, files, nil) // reported
}

// imports is the importer of a package.
type imports struct {
	checker *checker
	listed  *listedPackage
}

// Import returns the types of an imported package. It waits for the end of the package's check.
func (i imports) Import(path string) (*types.Package, error) {
	if mapped := i.listed.ImportMap[path]; mapped != "" {
		path = mapped
	}
	r := i.checker.results[path]
	if r == nil {
		return nil, fmt.Errorf("package %s is not in the output of go list", path)
	}
	<-r.done
	return r.types, nil
}
