//go:build !unix && !windows

package terminal

import "os"

// enableSequences reports whether a terminal obeys control sequences.
func enableSequences(*os.File) bool { return false }
