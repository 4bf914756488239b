package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/anykind/anykind/dev/internal/typecheck"
)

// fileProxy is a GOPROXY folder with the modules of this repository, and an empty module cache. Unpublished versions must not
// enter the user's module cache.
type fileProxy struct {
	dir   string
	env   []string
	types *typecheck.Checker
}

// newFileProxy returns an empty proxy below a temporary folder. Third-party modules come from the user's module cache or proxy.
// Each run needs a new path of the module cache: go's build cache keeps the imports of a module's packages by the module's path
// alone.
func newFileProxy(ctx context.Context, temp string) (*fileProxy, error) {
	settings, err := output(ctx, command{name: "go", args: []string{"env", "GOPROXY", "GOMODCACHE"}})
	if err != nil {
		return nil, err
	}
	proxies, modcache, _ := strings.Cut(settings, "\n")
	dir := filepath.Join(temp, "proxy")
	host := typecheck.Platform{GOOS: runtime.GOOS, GOARCH: runtime.GOARCH}
	return &fileProxy{dir: dir, types: typecheck.New(host), env: []string{
		"GOWORK=off", "GOFLAGS=-modcacherw -trimpath -gcflags=all=-dwarf=false", // as in Makefile
		"GOSUMDB=off", "GOMODCACHE=" + filepath.Join(temp, "modcache"),
		"GOPROXY=" + fileURL(dir) + "," + fileURL(filepath.Join(modcache, "cache", "download")) + "," + proxies,
	}}, nil
}

func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }

// goCommand returns a go command in dir, outside of any workspace, with the modules of the proxy.
func (p *fileProxy) goCommand(dir string, args ...string) command {
	return command{dir: dir, env: p.env, name: "go", args: args}
}

// checkTypes checks all packages of the module in dir and their dependencies. The modules of the repository share most dependencies.
func (p *fileProxy) checkTypes(ctx context.Context, dir string) error {
	_, err := p.types.Check(ctx, dir, p.env, "./...")
	return err
}

// add publishes a version of a module from the latest commit of the repository.
func (p *fileProxy) add(ctx context.Context, root string, m *goModule, version string) error {
	dir := filepath.Join(p.dir, m.path, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(root, m.folder, "go.mod"))
	if err != nil {
		return err
	}
	time, err := git(ctx, root, "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		version + ".mod": string(goMod), version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time), "list": version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	folder := m.folder
	if folder == "." {
		folder = ""
	}
	err = zip.CreateFromVCS(archive, module.Version{Path: m.path, Version: version}, root, "HEAD", folder)
	return errors.Join(err, archive.Close())
}
