package print

import (
	"io"
	"strings"
	"unicode/utf8"
)

const (
	minColumnWidth = 6
	columnPadding  = 3
	// maxLookAhead is the text that a columnWriter holds before it decides on the widths of columns.
	maxLookAhead = 1 << 20
)

// columnWriter aligns columns as kubectl does. It takes the widths from the rows until the first flush, or from the first
// ones if they are more than maxLookAhead bytes; after that it writes each row at once, and a wider cell widens its column.
type columnWriter struct {
	w       io.Writer
	palette palette
	widths  []int
	// held are the cells of rows that are not written yet, one after the other, and rows their numbers of cells.
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
	return &columnWriter{w: w, palette: palette}
}

// row adds a row. The cells are copied.
func (c *columnWriter) row(cells []string, isHeader bool) error {
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

// writeSize is the size from which a buffer is written.
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

// flush writes all rows. Those that follow have the same widths or wider ones.
func (c *columnWriter) flush() error {
	cells := c.held
	for _, row := range c.rows {
		c.append(cells[:row.cells], row.isHeader)
		cells = cells[row.cells:]
		if err := c.writeIfFull(); err != nil {
			return err
		}
	}
	c.held, c.rows, c.size = nil, nil, 0
	c.fixed = true
	return c.write()
}

// escapeTerminal makes a text harmless for terminals, as kubectl does.
func escapeTerminal(text string) string {
	if !strings.ContainsAny(text, "\x1b\r") {
		return text
	}
	return strings.NewReplacer("\x1b", "^[", "\r", "\\r").Replace(text)
}
