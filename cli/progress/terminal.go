package progress

import (
	"io"
	"os"

	"golang.org/x/term"
)

// sizeOf returns Display.size for a writer. It returns false for TERM=dumb.
func sizeOf(out io.Writer) func() (int, int, bool) {
	file, isFile := out.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return func() (int, int, bool) { return 0, 0, false }
	}
	return func() (int, int, bool) {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24, true
		}
		return width, height, true
	}
}
