//go:build !windows

package progress

import "io"

// enableANSI returns nil: terminals support escape codes.
func enableANSI(io.Writer) (restore func()) { return nil }
