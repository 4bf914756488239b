//go:build unix

package edit

import (
	"io/fs"
	"os"
	"syscall"
)

// copyOwner copies owner and group: root may edit a file of any user.
func copyOwner(from fs.FileInfo, to string) error {
	old, ok := from.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	if current, ok := info.Sys().(*syscall.Stat_t); ok && current.Uid == old.Uid && current.Gid == old.Gid {
		return nil
	}
	return os.Chown(to, int(old.Uid), int(old.Gid))
}
