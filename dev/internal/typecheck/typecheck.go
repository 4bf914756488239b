// Package typecheck checks the types of packages and of all their dependencies from source. A compiler finds the same errors
// in ten times the time.
package typecheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Platform is the platform of a check.
type Platform struct{ GOOS, GOARCH string }

// Checker checks packages for a platform. Packages with the same files and dependencies are checked once. A Checker is not safe for
// concurrent use.
type Checker struct {
	platform Platform
	fset     *token.FileSet
	sizes    types.Sizes
	known    map[string]*result // by key
}

// New returns a Checker for a platform.
func New(platform Platform) *Checker {
	return &Checker{platform: platform, fset: token.NewFileSet(), sizes: types.SizesFor("gc", platform.GOARCH), known: map[string]*result{}}
}

// Check checks the packages matched by patterns and their dependencies, without tests. It runs the go command in dir with
// additional environment variables. Cgo is off. Function bodies of the standard library are not checked. Check returns the number of
// packages.
func (c *Checker) Check(ctx context.Context, dir string, env []string, patterns ...string) (int, error) {
	env = append(append(os.Environ(), env...), "GOOS="+c.platform.GOOS, "GOARCH="+c.platform.GOARCH, "CGO_ENABLED=0")
	packages, err := list(ctx, dir, env, patterns)
	if err != nil {
		return 0, err
	}
	return len(packages), c.checkAll(ctx, packages)
}

// listedPackage is a package as go list prints it.
type listedPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	ImportMap  map[string]string // paths in the source to import paths
	Standard   bool
	Module     *struct{ GoVersion string }
}

// goVersion returns the version of the language, or "" for the newest.
func (l *listedPackage) goVersion() string {
	if l.Module == nil || l.Module.GoVersion == "" {
		return ""
	}
	return "go" + l.Module.GoVersion
}

const listFields = "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,Standard,Module"

// list returns the packages and their dependencies, each after its own dependencies.
func list(ctx context.Context, dir string, env, patterns []string) ([]*listedPackage, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", listFields}, patterns...)...)
	command.Dir = dir
	command.Env = env
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s in %s: %w\n%s", strings.Join(patterns, " "), dir, err, stderr.String())
	}
	var packages []*listedPackage
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		listed := &listedPackage{}
		if err := decoder.Decode(listed); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode output of go list: %w", err)
		}
		packages = append(packages, listed)
	}
}
