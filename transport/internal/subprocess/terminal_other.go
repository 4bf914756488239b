//go:build !windows

package subprocess

import "os"

// IsTerminal reports whether a file is a character device other than /dev/null: standard input rarely is a different device.
func IsTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
