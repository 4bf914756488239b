package print

import "io"

// Columns writes plain rows, aligned like kubectl's. It is not safe for concurrent use.
type Columns struct {
	columns *columnWriter
	header  []string // nil after it was written
}

// NewColumns returns a writer of rows to w, below a header. A nil header is not written.
func NewColumns(w io.Writer, header []string) *Columns {
	return &Columns{columns: newColumnWriter(w, palette{}), header: header}
}

// Row adds a row.
func (c *Columns) Row(cells ...string) error {
	if err := c.writeHeader(); err != nil {
		return err
	}
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = escapeTerminal(cell)
	}
	return c.columns.row(escaped, false)
}

func (c *Columns) writeHeader() error {
	header := c.header
	if header == nil {
		return nil
	}
	c.header = nil
	return c.columns.row(header, true)
}

// Flush writes the header and all rows. Later rows keep the column widths.
func (c *Columns) Flush() error {
	if err := c.writeHeader(); err != nil {
		return err
	}
	return c.columns.flush()
}
