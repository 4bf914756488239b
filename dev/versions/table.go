package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
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
func (t *table) write(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := replaceTable(string(text), t.markdown())
	if err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644) //nolint:gosec // a page of the repository
}

func replaceTable(page, markdown string) (string, error) {
	before, rest, found := strings.Cut(page, beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !found || !ended {
		return "", errors.New("markers of the table missing")
	}
	return before + beginMarker + markdown + endMarker + after, nil
}
