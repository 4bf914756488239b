package kubeconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace puts data in the place of a file in one step: who reads sees the old file or the new one, whole.
func replace(path string, data []byte) (err error) {
	// In the same folder, as a rename cannot leave a file system. CreateTemp gives it mode 0600.
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // the first error says more
		}
	}()
	if err := fill(temp, data, path); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// fill writes and closes the file, with the mode and owner of the one it will replace.
func fill(temp *os.File, data []byte, path string) (err error) {
	defer func() { err = errors.Join(err, temp.Close()) }()
	old, err := os.Stat(path)
	switch {
	case err == nil:
		if err := keepOwner(temp, old); err != nil {
			return err
		}
		if err := temp.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := temp.Write(data); err != nil {
		return err
	}
	return temp.Sync() // a crash after the rename must not leave an empty file
}
