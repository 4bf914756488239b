//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing: only Linux has such a signal. The watchdog remains.
func dieWithParent(*syscall.SysProcAttr) {}
