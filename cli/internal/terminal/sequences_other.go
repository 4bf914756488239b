//go:build !unix && !windows

package terminal

import "os"

// enableSequences reports whether a terminal supports control sequences.
func enableSequences(*os.File) bool { return false }
