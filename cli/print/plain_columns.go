package print

import "io"

// ColumnsWriter writes plain rows, aligned like kubectl's. It is not safe for concurrent use.
type ColumnsWriter struct {
	columns *columnWriter
	header  []string
}

// NewColumns returns a writer of rows below a header. A nil header is not written.
func NewColumns(w io.Writer, header []string) *ColumnsWriter {
	return &ColumnsWriter{columns: newColumnWriter(w, palette{}), header: header}
}

// Row adds a row.
func (c *ColumnsWriter) Row(cells ...string) error {
	if c.header != nil {
		header := c.header
		c.header = nil
		if err := c.columns.row(header, true); err != nil {
			return err
		}
	}
	clean := make([]string, len(cells))
	for i, cell := range cells {
		clean[i] = escapeTerminal(cell)
	}
	return c.columns.row(clean, false)
}

// Flush writes all rows. Later rows keep the column widths.
func (c *ColumnsWriter) Flush() error { return c.columns.flush() }

// Columns writes a header and rows, aligned like kubectl's. The header is written even without rows.
func Columns(w io.Writer, header []string, rows [][]string) error {
	columns := NewColumns(w, header)
	if len(rows) == 0 && header != nil {
		columns.header = nil
		if err := columns.columns.row(header, true); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := columns.Row(row...); err != nil {
			return err
		}
	}
	return columns.Flush()
}
