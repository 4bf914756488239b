package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// extensions are the file name extensions to read in folders.
func extensions() []string { return []string{".json", ".yaml", ".yml"} }

// hostFS has the files of the operating system, by absolute and relative paths of its own form.
type hostFS struct{}

func (hostFS) Open(name string) (fs.File, error)          { return os.Open(name) }
func (hostFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (hostFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (hostFS) Glob(pattern string) ([]string, error)      { return filepath.Glob(pattern) }

func (r Reader) fileSystem() fs.FS {
	if r.FS == nil {
		return hostFS{}
	}
	return r.FS
}

// expandPaths returns the files of paths: files, folders or patterns.
func expandPaths(files fs.FS, paths []string, recursive bool) ([]string, error) {
	var all []string
	var errs []error
	for _, one := range paths {
		found, err := expandPath(files, one, recursive)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, found...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 && len(paths) > 0 {
		return nil, fmt.Errorf("error reading %v: recognized file extensions are %v", paths, extensions())
	}
	return all, nil
}

func expandPath(files fs.FS, name string, recursive bool) ([]string, error) {
	if name == Stdin || isURL(name) {
		return []string{name}, nil
	}
	matches := []string{name}
	if _, err := fs.Stat(files, name); errors.Is(err, fs.ErrNotExist) {
		if matches, err = fs.Glob(files, name); err != nil {
			return nil, fmt.Errorf("pattern %q is not valid: %w", name, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("the path %q does not exist", name)
		}
	}
	var all []string
	for _, match := range matches {
		info, err := fs.Stat(files, match)
		if err != nil {
			return nil, fmt.Errorf("the path %q cannot be accessed: %w", match, err)
		}
		if !info.IsDir() {
			all = append(all, match)
			continue
		}
		found, err := filesOfFolder(files, match, recursive)
		if err != nil {
			return nil, fmt.Errorf("error reading %q: %w", match, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func filesOfFolder(files fs.FS, folder string, recursive bool) ([]string, error) {
	var all []string
	err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != folder && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(extensions(), path.Ext(name)):
			all = append(all, name)
		}
		return nil
	})
	return all, err
}
