package main

import (
	"fmt"
	"strings"

	"github.com/anykind/anykind/dev/internal/page"
)

// table has a row for each module and a column for each version.
type table struct {
	versions []string
	rows     []row
}

type row struct {
	module  string
	results []string
}

const (
	beginMarker = "<!-- versions: written by make versions -->\n"
	endMarker   = "<!-- versions: end -->"
)

// markdown returns the table as a page shows it.
func (t *table) markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| module | %s |\n|---|%s\n", strings.Join(t.versions, " | "), strings.Repeat("---|", len(t.versions)))
	for _, row := range t.rows {
		fmt.Fprintf(&text, "| `%s` | %s |\n", row.module, strings.Join(row.results, " | "))
	}
	return text.String()
}

// write replaces the table between the markers of a page.
func (t *table) write(path string) error {
	return page.Write(path, beginMarker, endMarker, t.markdown())
}
