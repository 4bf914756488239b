package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// library is a library with its tested versions, oldest first. go.work selects the last version.
type library struct {
	name, module, folder string
	versions             []string
}

var libraries = []library{
	{
		name: "client-go", module: "k8s.io/client-go", folder: "clientgo",
		versions: []string{"v0.16.0", "v0.17.0", "v0.18.0", "v0.19.0", "v0.26.0", "v0.32.0", "v0.34.13", "v0.35.10", "v0.36.6", "v0.37.2"},
	},
	{
		name: "controller-runtime", module: "sigs.k8s.io/controller-runtime", folder: "controllerruntime",
		versions: []string{"v0.22.5", "v0.23.3", "v0.24.1", "v0.25.2"},
	},
}

// before117 has the modules of the tag kubernetes-1.16.0, all without versions.
var before117 = map[string]string{
	"k8s.io/client-go": "v0.0.0-20190918160344-1fbdaa4c8d90", "k8s.io/apimachinery": "v0.0.0-20190913080033-27d36303b655",
}

// compiled are newer versions of indirect modules: current Go does not compile the versions required by early libraries.
var compiled = []string{
	"github.com/json-iterator/go v1.1.12", "github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee", "golang.org/x/net v0.30.0",
	"golang.org/x/sys v0.30.0",
}

// own are the observers of this repository.
var own = []observer{
	{library: "anykind", version: "Follow", mode: "follow"}, {library: "anykind", version: "cache"}, {library: "anykind", version: "audit", mode: "audit"},
}

// buildAll builds the observers of the versions, or of all for "".
func buildAll(ctx context.Context, dir, versions string) ([]observer, error) {
	observers, err := buildCurrent(ctx, dir)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failures []error
	var builds sync.WaitGroup
	free := make(chan struct{}, maxBuilds)
	for _, l := range libraries {
		for _, v := range l.versions[:len(l.versions)-1] {
			if !isChosen(versions, v) {
				continue
			}
			free <- struct{}{}
			builds.Go(func() {
				defer func() { <-free }()
				path, err := l.build(ctx, dir, v)
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err)
				observers = append(observers, observer{library: l.name, version: v, path: path})
			})
		}
	}
	builds.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(observers, func(o observer) bool { return !isChosen(versions, o.version) }), nil
}

// maxBuilds is the number of builds at a time.
const maxBuilds = 4

func isChosen(versions, version string) bool {
	return versions == "" || slices.Contains(strings.Split(versions, ","), version)
}

// buildCurrent builds the observers of this repository, and of the versions selected by go.work.
func buildCurrent(ctx context.Context, dir string) (observers []observer, err error) {
	if err := goBuild(ctx, nil, "-o", dir+string(filepath.Separator), "./anykind", "./clientgo", "./controllerruntime"); err != nil {
		return nil, err
	}
	for _, o := range own {
		o.path = filepath.Join(dir, "anykind")
		observers = append(observers, o)
	}
	for _, l := range libraries {
		o := observer{library: l.name, version: l.versions[len(l.versions)-1], path: filepath.Join(dir, l.folder)}
		info, err := buildinfo.ReadFile(o.path)
		if err != nil {
			return nil, err
		}
		for _, module := range info.Deps {
			if module.Path == l.module && module.Version != o.version {
				return nil, fmt.Errorf("the newest version of %s in build.go is %s, and go.work selects %s", l.name, o.version, module.Version)
			}
		}
		observers = append(observers, o)
	}
	return observers, nil
}

// build builds the observer of a version with a go.mod of its own.
func (l *library) build(ctx context.Context, dir, version string) (path string, err error) {
	path = filepath.Join(dir, l.folder+"-"+version)
	requires := []string{l.module + " " + version}
	args := []string{}
	if l.name == "client-go" {
		requires = append(requires, "k8s.io/apimachinery "+version)
		requires = append(requires, compiled...)
	}
	if version < "v0.18" {
		args = append(args, "-tags", "before118")
	}
	modfile := "module github.com/anykind/anykind/dev/peers\n\ngo 1.26.0\n\n"
	for _, require := range requires {
		name, _, _ := strings.Cut(require, " ")
		if untagged := before117[name]; version < "v0.17" && untagged != "" {
			require = name + " " + untagged
		}
		modfile += "require " + require + "\n"
	}
	if err := os.WriteFile(path+".mod", []byte(modfile), 0o600); err != nil {
		return "", err
	}
	args = append(args, "-mod=mod", "-modfile="+path+".mod", "-o", path, "./"+l.folder)
	if err := goBuild(ctx, []string{"GOWORK=off"}, args...); err != nil {
		return "", fmt.Errorf("%s %s: %w", l.name, version, err)
	}
	return path, nil
}

func goBuild(ctx context.Context, env []string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	command.Env = append(os.Environ(), env...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}
