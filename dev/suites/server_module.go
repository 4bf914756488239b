package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tests of Kubernetes start its API server in their own process. Go reuses the sandbox's compiled packages of kube-apiserver only
// if every module has the same version, and every package the same flags. So these tests compile in a main module like the
// sandbox's. It requires only k8s.io/kubernetes and its requirements: modules of this repository are required without their own
// requirements, hidden by go build -overlay. They compile against Kubernetes' versions of apimachinery and client-go.

// serverModule is the folder of the main module, in the folder of a module of tests.
const serverModule = ".server"

// goMod has the used parts of a go.mod, in the form of go mod edit -json.
type goMod struct {
	Module  modulePath
	Go      string
	Require []requirement
	Replace []replacement
}

type modulePath struct{ Path string }

type requirement struct {
	Path, Version string
	Indirect      bool
}

type replacement struct{ Old, New modulePath }

// readGoMod reads a go.mod.
func readGoMod(ctx context.Context, path string) (*goMod, error) {
	output, err := goCommand(ctx, filepath.Dir(path), "mod", "edit", "-json", path)
	if err != nil {
		return nil, err
	}
	var m goMod
	return &m, json.Unmarshal(output, &m)
}

// writeServerModule writes the main module for the module of tests in dir; source is the folder of k8s.io/kubernetes.
func (u *upstream) writeServerModule(ctx context.Context, source, dir, root string) error {
	server, err := readGoMod(ctx, filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	versions, err := parseVersions(versionList)
	if err != nil {
		return err
	}
	tests, err := readGoMod(ctx, filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, serverModule)
	replacements, err := u.hideRequirements(ctx, server, folder, root)
	if err != nil {
		return err
	}
	text := server.generated(u.module, versions[u.module].Version) +
		fmt.Sprintf("\nrequire %[1]s v0.0.0\n\nreplace %[1]s => ..\n%[2]s", tests.Module.Path, replacements)
	main := filepath.Join(folder, "go.mod")
	if err := writeFile(main, text); err != nil {
		return err
	}
	// This completes go.sum, but also adds requirements to go.mod. They would change versions and are dropped.
	if _, err := goCommand(ctx, folder, "list", "-overlay", overlayFile, "-deps", "-test", tests.Module.Path+"/..."); err != nil {
		return err
	}
	return writeFile(main, text)
}

// overlayFile is the file for -overlay, in the folder of the main module.
const overlayFile = "overlay.json"

// hideRequirements writes go.mod files of this repository's modules without the requirements shared with server, and the overlay
// for them. It returns the replace lines of the main module's go.mod.
func (u *upstream) hideRequirements(ctx context.Context, server *goMod, folder, root string) (string, error) {
	replaced := map[string]string{}
	var lines strings.Builder
	for i, required := range u.requires {
		path := filepath.Join(root, required, "go.mod")
		ours, err := readGoMod(ctx, path)
		if err != nil {
			return "", err
		}
		replaced[path] = filepath.Join(folder, fmt.Sprintf("required%d.mod", i))
		if err := writeFile(replaced[path], ours.without(server)); err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "\nreplace %s => %q\n", ours.Module.Path, filepath.Dir(path))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	return lines.String(), writeFile(filepath.Join(folder, overlayFile), string(overlay))
}

// generated returns the go.mod of a module that requires m. The modules in m's staging folders are replaced by their published
// versions, like in the sandbox.
func (m *goMod) generated(path, version string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "module anykind.test/server\n\ngo %s\n\nrequire %s %s\n", m.Go, path, version)
	published := "v0." + strings.TrimPrefix(version, "v1.")
	for _, r := range m.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/src/") {
			fmt.Fprintf(&text, "\nreplace %s => %s %s\n", r.Old.Path, r.Old.Path, published)
		}
	}
	return text.String()
}

// without returns the go.mod of m without requirements of modules required by other, in whatever version.
func (m *goMod) without(other *goMod) string {
	text := fmt.Sprintf("module %s\n\ngo %s\n", m.Module.Path, m.Go)
	for _, required := range m.Require {
		known := slices.ContainsFunc(other.Require, func(theirs requirement) bool { return theirs.Path == required.Path })
		if !known && !required.Indirect {
			text += fmt.Sprintf("\nrequire %s %s\n", required.Path, required.Version)
		}
	}
	return text
}

func writeFile(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600))
}
