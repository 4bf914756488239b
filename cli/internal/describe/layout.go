package describe

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field is an entry of a description: a label followed by lines of text, or by nested fields, items or a table.
type field struct {
	label  string
	lines  []string
	fields []field
	// items are the elements of a list. Each element begins with a dash.
	items [][]field
	// rows is a table. Its first row is the header.
	rows [][]string
}

// none is the text of an empty value.
const none = "<none>"

// maxAligned is the length in bytes of the longest label considered for the width of the label column.
const maxAligned = 28

// indent is the indentation of nested fields.
const indent = "  "

// text returns a field of lines, or <none> without lines.
func text(label string, lines ...string) field {
	if len(lines) == 0 {
		lines = []string{none}
	}
	return field{label: label, lines: lines}
}

// optional returns no field for an empty value.
func optional(label, value string) []field {
	if value == "" {
		return nil
	}
	return []field{text(label, strings.Split(value, "\n")...)}
}

// group returns a field with nested fields, or <none> without fields.
func group(label string, fields []field) field {
	if len(fields) == 0 {
		return text(label)
	}
	return field{label: label, fields: fields}
}

// table returns a field with a table, or <none> without rows.
func table(label string, header []string, rows [][]string) field {
	if len(rows) == 0 {
		return text(label)
	}
	return field{label: label, rows: append([][]string{header}, rows...)}
}

// writeFields writes fields with their texts aligned in a column. first replaces margin in the first line.
func writeFields(w io.Writer, fields []field, first, margin string) {
	width := 0
	for i := range fields {
		if f := &fields[i]; len(f.lines) > 0 && len(f.label) <= maxAligned {
			width = max(width, utf8.RuneCountInString(printable(f.label))+len(":  "))
		}
	}
	for i := range fields {
		writeField(w, &fields[i], first, margin, width)
		first = margin
	}
}

func writeField(w io.Writer, f *field, first, margin string, width int) {
	label := printable(f.label) + ":"
	gap := strings.Repeat(" ", max(len(indent), width-utf8.RuneCountInString(label)))
	if f.label == "" {
		label = ""
		gap = ""
		width = 0
	}
	switch {
	case len(f.lines) > 0:
		line := first + label + gap + printable(f.lines[0])
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		for _, more := range f.lines[1:] {
			line := margin + strings.Repeat(" ", width) + printable(more)
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	case len(f.fields) > 0:
		fmt.Fprintln(w, first+label)
		writeFields(w, f.fields, margin+indent, margin+indent)
	case len(f.items) > 0:
		fmt.Fprintln(w, first+label)
		for _, item := range f.items {
			writeFields(w, item, margin+indent+"- ", margin+indent+"  ")
		}
	case len(f.rows) > 0:
		fmt.Fprintln(w, first+label)
		writeTable(w, f.rows, margin+indent)
	}
}

// writeTable writes rows in columns, with a line of dashes under the header.
func writeTable(w io.Writer, rows [][]string, margin string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(printable(cell)))
		}
	}
	writeRow := func(row []string) {
		line := margin
		for i, cell := range row {
			cell = printable(cell)
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+len(indent))
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	dashes := make([]string, len(rows[0]))
	for i, cell := range rows[0] {
		dashes[i] = strings.Repeat("-", utf8.RuneCountInString(cell))
	}
	writeRow(rows[0])
	writeRow(dashes)
	for _, row := range rows[1:] {
		writeRow(row)
	}
}

// printable escapes unprintable characters, such as control sequences for the terminal. A tab becomes four spaces.
func printable(s string) string {
	isPrintable := func(r rune) bool { return r == '\t' || unicode.IsPrint(r) }
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !isPrintable(r) }) < 0 {
		return strings.ReplaceAll(s, "\t", "    ")
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isPrintable(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
