package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const mainModule = "github.com/anykind/anykind"

// writeGoMod writes the go.mod of the check. If the check's version of apimachinery is older than the module's own requirement,
// it returns the required version.
func (c *check) writeGoMod() (oldest string, err error) {
	folder := filepath.Join(c.root, c.folder)
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	file, err := modfile.Parse(filepath.Join(c.folder, "go.mod"), text, nil)
	if err != nil {
		return "", err
	}
	c.module = file.Module.Mod.Path
	if oldest, err = setVersion(file, c.version, c.root); err != nil || oldest != "" {
		return oldest, err
	}
	if text, err = file.Format(); err != nil {
		return "", err
	}
	base := filepath.Join(c.scratch, strings.ReplaceAll(c.module+"@"+c.version, "/", "_"))
	c.modfile = base + ".mod"
	if err := os.WriteFile(c.modfile, text, 0o600); err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil {
		return "", err
	}
	return "", os.WriteFile(base+".sum", sums, 0o600)
}

// setVersion requires Kubernetes' libraries in file at version, and replaces the modules of this repository by the checkout at root. It drops
// the requirements of further Kubernetes modules, because the libraries determine their versions. Indirect requirements are left
// to go mod tidy. If version is older than the required version of apimachinery, it returns the required version.
func setVersion(file *modfile.File, version, root string) (oldest string, err error) {
	for _, required := range file.Require {
		path := required.Mod.Path
		switch {
		case path == "k8s.io/apimachinery" && semver.Compare(version, required.Mod.Version) < 0:
			return required.Mod.Version, nil
		case path == mainModule, strings.HasPrefix(path, mainModule+"/"):
			err = file.AddReplace(path, "", root+strings.TrimPrefix(path, mainModule), "")
		case !required.Indirect && strings.HasPrefix(path, "k8s.io/") && strings.HasPrefix(required.Mod.Version, "v0.3"):
			err = file.AddRequire(path, version)
		case required.Indirect, strings.HasPrefix(path, "k8s.io/"), strings.HasPrefix(path, "sigs.k8s.io/"):
			err = file.DropRequire(path)
		}
		if err != nil {
			return "", fmt.Errorf("change the requirement of %s: %w", path, err)
		}
	}
	file.Cleanup()
	return "", nil
}
