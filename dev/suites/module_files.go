package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copy copies the module, or its tests.
func (u *upstream) copy(source, dir string) error {
	if len(u.tests) == 0 {
		return copyTree(source, dir, func(string) bool { return true })
	}
	isTest := func(name string) bool {
		return strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.ToSlash(name), "testdata/")
	}
	for _, folder := range u.tests {
		if err := copyTree(filepath.Join(source, folder), filepath.Join(dir, folder), isTest); err != nil {
			return err
		}
	}
	versions, err := parseVersions(versionList)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("module anykind.test/%s\n\ngo 1.26.0\n\nrequire %s %s\n", u.name, u.module, versions[u.module].Version)
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600)
}

// copyTree copies the wanted files of a folder of the module cache. The source files are read-only, the copies are writable.
func copyTree(from, to string, wanted func(name string) bool) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if !wanted(name) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}

// download returns the folder of a module in Go's module cache. A checksum other than the pinned checksum is an error.
func download(ctx context.Context, module string, pinned version) (string, error) {
	output, failed := goCommand(ctx, os.TempDir(), "mod", "download", "-json", module+"@"+pinned.Version)
	var result struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(output, &result); err != nil {
		return "", cmp.Or(failed, err)
	}
	switch {
	case result.Dir == "":
		return "", errors.New(result.Error)
	case result.Sum != pinned.Sum:
		return "", fmt.Errorf("%s@%s: checksum %s, versions.txt has %s", module, pinned.Version, result.Sum, pinned.Sum)
	}
	return result.Dir, nil
}

// copyOthers copies the folders of other modules.
func (u *upstream) copyOthers(ctx context.Context, dir string) error {
	versions, err := parseVersions(versionList)
	if err != nil {
		return err
	}
	for _, other := range u.copies {
		source, err := download(ctx, other.module, versions[other.module])
		if err != nil {
			return err
		}
		all := func(string) bool { return true }
		if err := copyTree(filepath.Join(source, other.folder), filepath.Join(dir, other.folder), all); err != nil {
			return err
		}
	}
	return nil
}
