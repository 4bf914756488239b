// Package atomicfile replaces files atomically.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
)

// Write replaces a file with data. With an error the old file is left unchanged. The umask applies to mode. prepare, unless nil,
// is called with the path of the new file before the rename.
func Write(path string, data []byte, mode fs.FileMode, prepare func(temp string) error) (err error) {
	// Unlike os.CreateTemp, this applies the umask to the mode.
	name := fmt.Sprintf("%s.%d", path, rand.Uint64()) //nolint:gosec // unique, not secret
	temp, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Close())
	if err == nil && prepare != nil {
		err = prepare(name)
	}
	if err == nil {
		err = os.Rename(name, path)
	}
	return err
}
