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
	verdict *verdict
}

// String returns the counts.
func (v *verdict) String() string {
	text := fmt.Sprintf("%d passed, %d failed as listed", v.passed, len(v.excluded))
	if v.skipped > 0 {
		text += fmt.Sprintf(", %d skipped by upstream", v.skipped)
	}
	if len(v.repeated) > 0 {
		text += fmt.Sprintf(", %d in their second run: %s", len(v.repeated), strings.Join(v.repeated, "; "))
	}
	if len(v.failures) > 0 {
		text += fmt.Sprintf(", %d WRONG", len(v.failures))
	}
	return text
}

func printTable(w io.Writer, rows []row) {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "SUITE\tPASSED\tEXCLUDED\tSKIPPED\tWRONG\tSECONDS")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", r.report.suite.name, r.verdict.passed, len(r.verdict.excluded),
			r.verdict.skipped, len(r.verdict.failures), int(r.report.took/time.Second))
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
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", s.name, s.with, r.verdict.passed, len(r.verdict.excluded), r.verdict.skipped)
		excluded = append(excluded, r.verdict.excluded...)
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
