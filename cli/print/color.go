package print

import (
	"io"
	"os"
	"strings"

	"github.com/anykind/anykind/cli/internal/printable"
)

// palette colours cells by their content. The zero value does not change cells.
type palette struct{ enabled bool }

func (f *Flags) palette(w io.Writer) palette {
	switch f.Color {
	case "always":
		return palette{enabled: true}
	case "never":
		return palette{}
	}
	return palette{enabled: AllowsColor(w)}
}

// AllowsColor reports whether w is a terminal with colours: NO_COLOR is not set and TERM is not dumb.
func AllowsColor(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return IsTerminal(w)
}

// Terminal returns w, or a sanitizing writer to w if w is a terminal: control characters except tab and line break become U+FFFD.
// Use the writer for errors and warnings of a server. It is safe for concurrent use.
func Terminal(w io.Writer) io.Writer { return printable.Writer(w) }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool { return printable.IsTerminal(stream) }

const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

func (p palette) append(buffer []byte, cell string, isHeader bool) []byte {
	if !p.enabled {
		return append(buffer, cell...)
	}
	color := bold
	if !isHeader {
		color = colorOf(cell)
	}
	if color == "" {
		return append(buffer, cell...)
	}
	buffer = append(buffer, color...)
	buffer = append(buffer, cell...)
	return append(buffer, reset...)
}

// colorOf returns the colour of a status, or "".
func colorOf(cell string) string {
	switch cell {
	case "Running", "Ready", "Active", "Bound", "Available", "Complete", "Completed", "Succeeded", "Approved,Issued":
		return green
	case "Pending", "ContainerCreating", "PodInitializing", "Terminating", "Unknown", "Released", "Suspended", "Warning", "SchedulingGated":
		return yellow
	case "Failed", "Error", "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "OOMKilled", "Evicted", "Lost",
		"NotReady", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return red
	}
	if strings.HasPrefix(cell, "Init:") {
		return yellow
	}
	if ready, total, found := strings.Cut(cell, "/"); found && ready != total && isNumber(ready) && isNumber(total) {
		return yellow
	}
	return ""
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
