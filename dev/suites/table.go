package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// page is the name of the document in docs.
const page = "COMPATIBILITY.md"

// introduction is the page's text above the table.
//
//go:embed introduction.md
var introduction string

// row is a suite's line in the table.
type row struct {
	report  *report
	summary *summary
}

// String returns the counts.
func (s *summary) String() string {
	text := fmt.Sprintf("%d passed, %d failed as listed", s.passed, len(s.excluded))
	if s.skipped > 0 {
		text += fmt.Sprintf(", %d skipped by upstream", s.skipped)
	}
	if len(s.repeated) > 0 {
		text += fmt.Sprintf(", %d in their second run: %s", len(s.repeated), strings.Join(s.repeated, "; "))
	}
	if len(s.failures) > 0 {
		text += fmt.Sprintf(", %d WRONG", len(s.failures))
	}
	return text
}

func printTable(w io.Writer, rows []row) {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "SUITE\tPASSED\tEXCLUDED\tSKIPPED\tWRONG\tSECONDS")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", r.report.suite.name, r.summary.passed, len(r.summary.excluded),
			r.summary.skipped, len(r.summary.failures), int(r.report.took/time.Second))
	}
	_ = table.Flush()
}

// document returns the page.
func document(rows []row) string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("\n| suite | with | passed | excluded | skipped upstream |\n|---|---|---|---|---|\n")
	var excluded []exclusion
	for _, r := range rows {
		s := r.report.suite
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", s.name, s.with, r.summary.passed, len(r.summary.excluded), r.summary.skipped)
		excluded = append(excluded, r.summary.excluded...)
	}
	b.WriteString("\n## Exclusions\n\n")
	if len(excluded) == 0 {
		b.WriteString("None.\n")
	}
	for _, e := range excluded {
		fmt.Fprintf(&b, "- %s: `%s`: %s\n", e.suite, e.test, e.reason)
	}
	return b.String()
}
