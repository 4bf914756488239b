// Package edit changes kubeconfig files like kubectl config, and keeps their comments, order and unknown fields.
//
//	err := edit.File(ctx, path, func(document *edit.Document) error {
//		document.SetCurrentContext("shop")
//		return nil
//	})
//
// A [Document] is a tree of YAML nodes. Parsing expands aliases and merge keys: otherwise a change to an entry could change
// further entries. The meaning of a document is always as decoded by kubectl: before a document is returned, all unedited parts
// are compared with the original, and a difference is an error.
package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport/kubeconfig"
)

const (
	lockTimeout  = 10 * time.Second
	lockInterval = 20 * time.Millisecond
	maxLinks     = 40 // as in Linux
)

// File changes the kubeconfig file at path, or creates it. It holds kubectl's lock, PATH.lock, while change edits the current
// content, and then replaces the file atomically. On any error the file stays as it was. A symbolic link stays a link. A new file
// gets mode 0600; an existing file keeps its mode and owner. If the file cannot be replaced, such as a file mounted into a
// container, it is overwritten. If overwriting fails half-way and cannot be undone, the error names a file with the new content.
//
// Parts not edited by change keep their meaning, merge keys and aliases included, or File fails.
//
// File waits for the lock until ctx ends, but at most 10 seconds: a killed program leaves its lock behind.
func File(ctx context.Context, path string, change func(*Document) error) error {
	err := editFile(ctx, path, change)
	if parseError, ok := errors.AsType[*kubeconfig.ParseError](err); ok && parseError.Path == "" {
		parseError.Path = path
		return err
	}
	if err != nil {
		return fmt.Errorf("edit kubeconfig %s: %w", path, err)
	}
	return nil
}

func editFile(ctx context.Context, path string, change func(*Document) error) (err error) {
	target, err := followLinks(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, path, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	before, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, err := apply(change, before, path)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return newReplacer().replace(target, before, after)
}

// apply returns the file's new content, or before itself if the meaning is unchanged.
func apply(change func(*Document) error, before []byte, path string) ([]byte, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	document, err := Parse(before, filepath.Dir(absolute))
	if err != nil {
		return nil, err
	}
	if err := change(document); err != nil {
		return nil, err
	}
	after, err := document.Bytes()
	if err != nil {
		return nil, err
	}
	if _, err := kubeconfig.Parse(after, ""); err != nil {
		return nil, fmt.Errorf("nothing was written, as the file would be unusable: %w", err)
	}
	if len(before) > 0 && sameMeaning(before, after) {
		return before, nil
	}
	return after, nil
}

// followLinks returns the target of a chain of symbolic links. The target need not exist.
func followLinks(path string) (string, error) {
	for range maxLinks {
		next, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is no link or does not exist
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return "", fmt.Errorf("more than %d symbolic links", maxLinks)
}

// lock creates the lock files of path and of its link target.
func lock(ctx context.Context, path, target string) (unlock func() error, err error) {
	files := []string{path + ".lock", target + ".lock"}
	slices.Sort(files) // in a fixed order, to avoid a deadlock of two edits
	files = slices.Compact(files)
	var held []string
	unlock = func() error {
		var errs []error
		for _, file := range held {
			// A user may have deleted a lock file as a leftover.
			if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for _, file := range files {
		if err := createLock(ctx, file); err != nil {
			return nil, errors.Join(err, unlock())
		}
		held = append(held, file)
	}
	return unlock, nil
}

func createLock(ctx context.Context, path string) error {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0) // as kubectl does
		if err == nil {
			return file.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock: %w", err)
		}
		if err := retry.Sleep(ctx, lockInterval); err != nil {
			return fmt.Errorf("locked by another program (if none is running, delete %s): %w", path, err)
		}
	}
}
