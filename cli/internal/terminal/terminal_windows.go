package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableSequences enables control sequences on a console, and reports success.
func enableSequences(file *os.File) bool {
	handle := windows.Handle(file.Fd())
	var mode uint32
	if windows.GetConsoleMode(handle, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
