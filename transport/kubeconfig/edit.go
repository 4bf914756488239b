package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Edit changes the kubeconfig file at path, which need not exist. It holds the lock kubectl takes, PATH.lock, while
// change works on what the file says now, and replaces the file in one step; where change or anything else fails, the
// file stays as it was. A symbolic link stays one. A new file has mode 0600, an old one keeps its mode and owner. A file
// that cannot be replaced, as one that is mounted into a container, is written in place; where that fails half-way and
// cannot be undone, the error names a file with the new content.
//
// What change was not asked to change keeps its meaning, merge keys and aliases included, or Edit fails.
//
// Edit waits for the lock until ctx ends, but 10 seconds at most: a program that was killed leaves its lock behind.
func Edit(ctx context.Context, path string, change func(*Document) error) (err error) {
	target, err := followLinks(path)
	if err != nil {
		return fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	unlock, err := lock(ctx, path, target)
	if err != nil {
		return fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()

	before, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	exists := err == nil
	after, err := edited(before, path, change)
	if err != nil {
		return err
	}
	if exists && bytes.Equal(before, after) {
		return nil
	}
	if err := newReplacer().replace(target, before, after); err != nil {
		return fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	return nil
}

// edited is what the file will hold: before itself where the change changes nothing.
func edited(before []byte, path string, change func(*Document) error) ([]byte, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	document, err := ParseDocument(before, filepath.Dir(absolute))
	if err != nil {
		return nil, inFile(err, path)
	}
	if err := change(document); err != nil {
		return nil, fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	after, err := document.Bytes()
	if err != nil {
		return nil, fmt.Errorf("edit the kubeconfig %s: %w", path, err)
	}
	// A file that nobody can read would be the worst outcome.
	if _, err := Parse(after, filepath.Dir(absolute)); err != nil {
		return nil, fmt.Errorf("edit the kubeconfig %s: nothing was written, as the change would make it unusable: %w", path, err)
	}
	if len(before) > 0 && sameMeaning(before, after) {
		return before, nil
	}
	return after, nil
}

// followLinks finds the file that a chain of symbolic links names, whether it exists or not.
func followLinks(path string) (string, error) {
	const most = 40 // as Linux
	for range most {
		next, err := os.Readlink(path)
		if err != nil {
			// It is no link or does not exist. Its folder may still be reached through links.
			return path, nil //nolint:nilerr // see above
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return "", fmt.Errorf("more than %d symbolic links lead on from it", most)
}
