package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// incompatibleChanges returns a line for each incompatible change of a public API since the last version: a removed module,
// package or name, or a changed declaration. It returns "" if there is no last version.
func incompatibleChanges(ctx context.Context, root string, modules []*goModule, last string) (string, error) {
	if last == "" {
		fmt.Println("release: no earlier version to compare the API with")
		return "", nil
	}
	temp, err := os.MkdirTemp("", "api")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := extract(ctx, root, last, temp); err != nil {
		return "", err
	}
	earlier, err := readModules(temp)
	if err != nil {
		return "", err
	}
	var incompatible strings.Builder
	for _, m := range published(earlier) {
		if !slices.ContainsFunc(modules, func(now *goModule) bool { return now.path == m.path }) {
			fmt.Fprintf(&incompatible, "\t%s: module removed\n", m.path)
			continue
		}
		before, err := loadAPI(ctx, temp, m)
		if err != nil {
			return "", err
		}
		after, err := loadAPI(ctx, root, m)
		if err != nil {
			return "", err
		}
		for _, change := range apidiff.ModuleChanges(before, after).Changes {
			if !change.Compatible {
				fmt.Fprintf(&incompatible, "\t%s: %s\n", m.path, change.Message)
			}
		}
	}
	return incompatible.String(), nil
}

// checkChanges prints the incompatible changes since the last version. It returns an error if they are not permitted (v1, or no
// new minor version) or not announced in CHANGELOG.
func checkChanges(incompatible, last, version, announced string) error {
	switch {
	case incompatible == "":
		return nil
	case semver.Major(last) == "v1":
		return fmt.Errorf("version %s must be compatible with %s; incompatible changes:\n%s", version, last, incompatible)
	case semver.MajorMinor(last) == semver.MajorMinor(version):
		return fmt.Errorf("version %s needs a new minor version after %s, because of incompatible changes:\n%s", version, last, incompatible)
	case announced == "":
		return fmt.Errorf("CHANGELOG has nothing below Unreleased, which must announce the incompatible changes since %s:\n%s", last, incompatible)
	}
	fmt.Printf("release: incompatible changes since %s, to be announced in CHANGELOG:\n%s", last, incompatible)
	return nil
}

// extract writes the files of a tag to a folder.
func extract(ctx context.Context, root, tag, dir string) error {
	archive, err := output(ctx, command{dir: root, name: "git", args: []string{"archive", "--format=tar", tag}})
	if err != nil {
		return err
	}
	tar := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	tar.Stdin = bytes.NewBufferString(archive)
	if printed, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("extract %s: %w\n%s", tag, err, printed)
	}
	return nil
}

// loadAPI reads the types of the public packages of a module, compiled in the workspace of a checkout.
func loadAPI(ctx context.Context, root string, m *goModule) (*apidiff.Module, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: filepath.Join(root, m.folder), Env: append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")),
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", m.path, err)
	}
	api := &apidiff.Module{Path: m.path}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", pkg.PkgPath, pkg.Errors[0])
		}
		if isPublic(pkg.PkgPath, pkg.Name) {
			api.Packages = append(api.Packages, pkg.Types)
		}
	}
	return api, nil
}

// isPublic reports whether a package is part of the public API.
func isPublic(path, name string) bool {
	return name != "main" && !strings.Contains("/"+path+"/", "/internal/") && !strings.Contains(path, "/examples/")
}
