package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// Go reuses compiled packages only for the same flags and the same versions of all dependencies. So generated modules require at
// least the versions selected by the workspace: client-go is compiled once for the tests of this repository and for all suites.

const (
	workspaceModule = "anykind.test/workspace"
	workspaceFolder = ".workspace"
)

// workspaceGoMod returns the go.mod of a module that requires the workspace's versions of the modules required by dev/bench or
// compat/controllerruntime.
func workspaceGoMod(ctx context.Context, root string) (string, error) {
	var required []requirement
	for _, folder := range []string{"dev/bench", "compat/controllerruntime"} {
		m, err := readGoMod(ctx, filepath.Join(root, folder, "go.mod"))
		if err != nil {
			return "", err
		}
		required = append(required, m.Require...)
	}
	list, err := goCommandWith(ctx, root, []string{"GOWORK=", "GOFLAGS="}, "list", "-m", "-f", "{{if not .Main}}{{.Path}} {{.Version}}{{end}}", "all")
	if err != nil {
		return "", err
	}
	text := "module " + workspaceModule + "\n\ngo 1.26.0\n"
	for line := range strings.Lines(string(list)) {
		path, _, _ := strings.Cut(line, " ")
		if slices.ContainsFunc(required, func(r requirement) bool { return r.Path == path }) {
			text += "\nrequire " + line
		}
	}
	return text, nil
}

// requireWorkspace raises the requirements of the module in dir to at least those of goMod, the result of workspaceGoMod.
func requireWorkspace(ctx context.Context, dir, goMod string) error {
	if err := writeFile(filepath.Join(dir, workspaceFolder, "go.mod"), goMod); err != nil {
		return err
	}
	edit := []string{"mod", "edit", "-require=" + workspaceModule + "@v0.0.0", "-replace=" + workspaceModule + "=./" + workspaceFolder}
	if _, err := goCommand(ctx, dir, edit...); err != nil {
		return err
	}
	_, err := goCommand(ctx, dir, "list", "-m", "all") // writes the raised versions to go.mod
	return err
}
