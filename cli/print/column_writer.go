package print

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/cli/internal/printable"
)

const (
	minColumnWidth = 6
	columnPadding  = 3
	// maxLookAhead is the limit in bytes of held rows. The column widths are fixed at this limit.
	maxLookAhead = 1 << 20
)

// columnWriter aligns columns as kubectl does. It holds rows until the first flush or maxLookAhead bytes, and takes the maximum
// widths of these rows. Later rows are not held. A wider cell in a later row widens its column.
type columnWriter struct {
	w       io.Writer
	palette palette
	// forTerminal replaces control characters in cells.
	forTerminal bool
	widths      []int
	// held has the cells of all unwritten rows. rows has the number of cells of each row.
	held   []string
	rows   []heldRow
	size   int
	fixed  bool
	buffer []byte
}

type heldRow struct {
	cells    int
	isHeader bool
}

func newColumnWriter(w io.Writer, palette palette) *columnWriter {
	// With colors, the output is for a terminal, even through a pipe.
	return &columnWriter{w: printable.Unwrap(w), palette: palette, forTerminal: palette.enabled || printable.IsTerminal(w)}
}

// row adds a row. The cells are copied. As in kubectl, the text behind a line break is the first cell of a new row.
func (c *columnWriter) row(cells []string, isHeader bool) error {
	if c.forTerminal {
		cells = slices.Clone(cells)
		for i, cell := range cells {
			cells[i] = printable.Text(cell)
		}
	}
	if !slices.ContainsFunc(cells, func(cell string) bool { return strings.Contains(cell, "\n") }) {
		return c.line(cells, isHeader)
	}
	var line []string
	for _, cell := range cells {
		first, behind, found := strings.Cut(cell, "\n")
		for ; found; first, behind, found = strings.Cut(behind, "\n") {
			if err := c.line(append(line, first), isHeader); err != nil {
				return err
			}
			line = line[:0]
		}
		line = append(line, first)
	}
	return c.line(line, isHeader)
}

// line adds a row of cells without line breaks.
func (c *columnWriter) line(cells []string, isHeader bool) error {
	c.widen(cells)
	if c.fixed {
		c.append(cells, isHeader)
		return c.writeIfFull()
	}
	c.held = append(c.held, cells...)
	c.rows = append(c.rows, heldRow{len(cells), isHeader})
	for _, cell := range cells {
		c.size += len(cell)
	}
	if c.size > maxLookAhead {
		return c.flush()
	}
	return nil
}

// widen makes columns wide enough for cells. The last cell of a row needs no width.
func (c *columnWriter) widen(cells []string) {
	for i, cell := range cells[:max(len(cells)-1, 0)] {
		if i == len(c.widths) {
			c.widths = append(c.widths, minColumnWidth)
		}
		if width := utf8.RuneCountInString(cell) + columnPadding; width > c.widths[i] {
			c.widths[i] = width
		}
	}
}

func (c *columnWriter) append(cells []string, isHeader bool) {
	for i, cell := range cells {
		c.buffer = c.palette.append(c.buffer, cell, isHeader)
		if i == len(cells)-1 {
			break
		}
		for range c.widths[i] - utf8.RuneCountInString(cell) {
			c.buffer = append(c.buffer, ' ')
		}
	}
	c.buffer = append(c.buffer, '\n')
}

// writeSize is the minimum size of a written buffer.
const writeSize = 64 << 10

func (c *columnWriter) writeIfFull() error {
	if len(c.buffer) < writeSize {
		return nil
	}
	return c.write()
}

func (c *columnWriter) write() error {
	_, err := c.w.Write(c.buffer)
	c.buffer = c.buffer[:0]
	return err
}

// flush writes all rows. Later rows have the same or wider columns.
func (c *columnWriter) flush() error {
	cells := c.held
	for _, row := range c.rows {
		c.append(cells[:row.cells], row.isHeader)
		cells = cells[row.cells:]
		if err := c.writeIfFull(); err != nil {
			return err
		}
	}
	c.held = nil
	c.rows = nil
	c.size = 0
	c.fixed = true
	return c.write()
}

// escapeTerminal escapes ESC and carriage return, as kubectl does.
func escapeTerminal(text string) string {
	if !strings.ContainsAny(text, "\x1b\r") {
		return text
	}
	return strings.NewReplacer("\x1b", "^[", "\r", "\\r").Replace(text)
}

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
	return printable.IsTerminal(w)
}

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
