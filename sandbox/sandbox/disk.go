//go:build unix

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

// neededSpace is what a component may be expected to find free on the disk.
const neededSpace = 1 << 20

// checkDisk returns an error if the disk of folder dir, or the user's quota on it, is
// full. It writes a file to see, which nobody else can: it has no name by then.
func checkDisk(dir string) error {
	file, err := os.CreateTemp(dir, "anykind-space-")
	if err != nil {
		return onlyFull(err)
	}
	_ = os.Remove(file.Name())
	_, err = file.Write(make([]byte, neededSpace))
	return onlyFull(errors.Join(err, file.Close()))
}

// onlyFull returns err if it means a full disk.
func onlyFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return nil
}
