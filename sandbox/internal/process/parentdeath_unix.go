//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing: only Linux has such a signal. The watchdog is left.
func dieWithParent(*syscall.SysProcAttr) {}
