package edit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replacer replaces a file's content. Tests replace its functions to simulate file systems.
type replacer struct {
	rename func(from, to string) error
	write  func(file *os.File, data []byte) error
}

func newReplacer() *replacer { return &replacer{rename: os.Rename, write: overwrite} }

// replace changes the content of the file at path from before to data by renaming a new file: readers see the old or the new
// content, whole. If a rename is not possible, for a mount point or a file of a different user, the file is overwritten, like in
// kubectl. The new file is kept until the overwrite has succeeded.
func (r *replacer) replace(path string, before, data []byte) (err error) {
	// The same folder is on the same file system, as required by a rename. CreateTemp sets mode 0600.
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if err != nil && !keep {
			_ = os.Remove(temp.Name()) // the first error is more specific
		}
	}()
	if err := errors.Join(overwrite(temp, data), temp.Close()); err != nil {
		return err
	}
	renameErr := copyOwnerAndMode(path, temp.Name())
	if renameErr == nil {
		renameErr = r.rename(temp.Name(), path)
	}
	if !needsOverwrite(renameErr) {
		return renameErr
	}
	if keep, err = r.overwrite(path, before, data); keep {
		return fmt.Errorf("%w; it cannot be renamed over, either (%w); the new content is in %s", err, renameErr, temp.Name())
	}
	if err != nil {
		return fmt.Errorf("%w; it cannot be renamed over, either: %w", err, renameErr)
	}
	return os.Remove(temp.Name())
}

// needsOverwrite reports whether a rename failed but the file may still be writable.
func needsOverwrite(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrPermission)
}

// overwrite writes to an existing file. If writing fails half-way, it restores the old content. isBroken reports a failed
// restore.
func (r *replacer) overwrite(path string, before, data []byte) (isBroken bool, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := r.write(file, data); err != nil {
		if r.write(file, before) != nil {
			return true, fmt.Errorf("written half: %w", err)
		}
		return false, err
	}
	return false, nil
}

// overwrite replaces an open file's content and syncs it: a crash after a rename must not leave an empty file.
func overwrite(file *os.File, data []byte) error {
	if _, err := file.WriteAt(data, 0); err != nil {
		return err
	}
	if err := file.Truncate(int64(len(data))); err != nil {
		return err
	}
	return file.Sync()
}

// copyOwnerAndMode copies the owner and the mode of the file at from, if it exists.
func copyOwnerAndMode(from, to string) error {
	old, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := copyOwner(old, to); err != nil {
		return err
	}
	return os.Chmod(to, old.Mode().Perm())
}
