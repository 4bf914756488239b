package progress

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// enableANSI enables escape codes on a console. restore restores the mode, and is nil for an unchanged mode.
func enableANSI(out io.Writer) (restore func()) {
	file, isFile := out.(*os.File)
	if !isFile {
		return nil
	}
	console := windows.Handle(file.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) != nil || mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0 {
		return nil
	}
	if windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return nil
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }
}
