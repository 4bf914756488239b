package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// replacer replaces a file's content. Its fields are the calls that fail on some file systems, for tests to replace.
type replacer struct {
	rename func(from, to string) error
	write  func(file *os.File, data []byte) error
}

func newReplacer() *replacer { return &replacer{rename: os.Rename, write: overwrite} }

// replace puts data in the place of the file at path, which holds before. It does so in one step, by renaming a new file:
// who reads sees the old content or the new one, whole. Where a file cannot be renamed over this one, because it is
// mounted by itself into a container or belongs to somebody else, it is written in place, as kubectl does; the new
// content then stays beside it until that has succeeded.
func (r *replacer) replace(path string, before, data []byte) (err error) {
	// In the same folder, as a rename cannot leave a file system. CreateTemp gives it mode 0600.
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if err != nil && !keep {
			_ = os.Remove(temp.Name()) // the first error says more
		}
	}()
	if err := fill(temp, data); err != nil {
		return err
	}
	refused := keepRights(temp.Name(), path)
	if refused == nil {
		refused = r.rename(temp.Name(), path)
	}
	if !needsInPlace(refused) {
		return refused
	}
	keep, err = r.inPlace(path, before, data)
	if keep {
		return fmt.Errorf("%w; it cannot be replaced either (%w); what it was to hold is in %s", err, refused, temp.Name())
	}
	if err != nil {
		return fmt.Errorf("%w; it cannot be replaced either: %w", err, refused)
	}
	return os.Remove(temp.Name())
}

// needsInPlace reports whether an error says that a file can only be replaced by writing it in place.
func needsInPlace(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrPermission)
}

// inPlace writes a file that must exist. If that fails half-way it writes back what was there before; broken reports that
// this failed too.
func (r *replacer) inPlace(path string, before, data []byte) (broken bool, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := r.write(file, data); err != nil {
		if restored := r.write(file, before); restored != nil {
			return true, fmt.Errorf("it was written half: %w", err)
		}
		return false, err
	}
	return false, nil
}

// overwrite gives an open file its content, and waits until the disk has it.
func overwrite(file *os.File, data []byte) error {
	if _, err := file.WriteAt(data, 0); err != nil {
		return err
	}
	if err := file.Truncate(int64(len(data))); err != nil {
		return err
	}
	return file.Sync()
}

// fill writes and closes the file.
func fill(temp *os.File, data []byte) (err error) {
	defer func() { err = errors.Join(err, temp.Close()) }()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	return temp.Sync() // a crash after the rename must not leave an empty file
}

// keepRights gives the file at temp the mode and owner of the one at path, if that exists.
func keepRights(temp, path string) error {
	old, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := keepOwner(temp, old); err != nil {
		return err
	}
	return os.Chmod(temp, old.Mode().Perm())
}
