package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patch is an edit to one file of a copy of a module, made to build it.
type patch struct {
	file     string // in the module, with slashes
	old, new string
}

// patchedCopy copies the module in moduleDir into scratch and applies patches to
// the copy. (go build -overlay refuses to replace files in the module cache.)
func patchedCopy(patches []patch, moduleDir, scratch string) (string, error) {
	dir := filepath.Join(scratch, "patched")
	if err := os.CopyFS(dir, os.DirFS(moduleDir)); err != nil {
		return "", fmt.Errorf("copying a module to patch it: %w", err)
	}
	for _, p := range patches {
		path := filepath.Join(dir, filepath.FromSlash(p.file))
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("patching %s: %w", p.file, err)
		}
		if strings.Count(string(text), p.old) != 1 {
			return "", fmt.Errorf("patching %s: the lines to change are not there; the patch is for another version", p.file)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o644); err != nil {
			return "", fmt.Errorf("patching %s: %w", p.file, err)
		}
	}
	return dir, nil
}
