package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions are the file name extensions to read in folders.
func extensions() []string { return []string{".json", ".yaml", ".yml"} }

// expandPaths returns the files of paths: files, folders or patterns.
func expandPaths(paths []string, recursive bool) ([]string, error) {
	var files []string
	var errs []error
	for _, path := range paths {
		found, err := expandPath(path, recursive)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files = append(files, found...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(files) == 0 && len(paths) > 0 {
		return nil, fmt.Errorf("error reading %v: recognized file extensions are %v", paths, extensions())
	}
	return files, nil
}

func expandPath(path string, recursive bool) ([]string, error) {
	switch {
	case path == Stdin:
		return []string{path}, nil
	case strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://"):
		return nil, fmt.Errorf("%s: manifests are not downloaded (run: curl -sSLf %s | … -f -)", path, path)
	}
	matches := []string{path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if matches, err = filepath.Glob(path); err != nil {
			return nil, fmt.Errorf("pattern %q is not valid: %w", path, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("the path %q does not exist", path)
		}
	}
	var files []string
	for _, match := range matches {
		info, err := os.Stat(match)
		if err != nil {
			return nil, fmt.Errorf("the path %q cannot be accessed: %w", match, err)
		}
		if !info.IsDir() {
			files = append(files, match)
			continue
		}
		found, err := filesOfFolder(match, recursive)
		if err != nil {
			return nil, fmt.Errorf("error reading %q: %w", match, err)
		}
		files = append(files, found...)
	}
	return files, nil
}

func filesOfFolder(folder string, recursive bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != folder && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(extensions(), filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
