//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// counts has the outcomes on a class of objects.
type counts struct{ missed, falseAlarms, notJudged int }

// column is a column of the table.
type column struct {
	name            string
	custom, builtIn counts
	result          *runResult
}

func newColumn(v *validator, result *runResult, objects []object) *column {
	c := &column{name: v.name, result: result}
	for _, one := range objects {
		outcome, found := result.outcomes[one.File]
		if !found && v.name == "anyctl" { // it prints findings alone
			outcome = valid
		}
		of := &c.builtIn
		if one.IsCustom {
			of = &c.custom
		}
		switch {
		case outcome == notJudged:
			of.notJudged++
		case outcome == valid && one.Rejected:
			of.missed++
		case outcome == invalid && !one.Rejected:
			of.falseAlarms++
		}
	}
	return c
}

// render returns the table.
func render(objects []object, columns []*column) string {
	var b strings.Builder
	row := func(title string, cell func(*column) string) {
		b.WriteString("| " + title + " |")
		for _, c := range columns {
			b.WriteString(" " + cell(c) + " |")
		}
		b.WriteString("\n")
	}
	row("", func(c *column) string { return c.name })
	b.WriteString("|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, class := range []struct {
		title string
		of    func(*column) *counts
	}{
		{"custom kinds", func(c *column) *counts { return &c.custom }},
		{"built-in kinds", func(c *column) *counts { return &c.builtIn }},
	} {
		accepted := 0
		rejected := 0
		for _, one := range objects {
			switch {
			case one.IsCustom != (class.title == "custom kinds"):
			case one.Rejected:
				rejected++
			default:
				accepted++
			}
		}
		row(fmt.Sprintf("%s: missed, of %d that the server rejects", class.title, rejected), func(c *column) string { return fmt.Sprint(class.of(c).missed) })
		row(fmt.Sprintf("%s: false alarms, of %d that the server accepts", class.title, accepted), func(c *column) string { return fmt.Sprint(class.of(c).falseAlarms) })
		row(class.title+": not judged", func(c *column) string { return fmt.Sprint(class.of(c).notJudged) })
	}
	row("processor time", func(c *column) string { return seconds(c.result.cpu) })
	row("time", func(c *column) string { return seconds(c.result.elapsed) })
	row("peak memory", func(c *column) string { return fmt.Sprintf("%d MB", c.result.memory/1e6) })
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

const (
	tableBegin = "<!-- table of validators: begin -->\n"
	tableEnd   = "<!-- table of validators: end -->\n"
)

// writeTable replaces the table of a page.
func writeTable(page, table string) error {
	data, err := os.ReadFile(page) //nolint:gosec // the caller's page
	if err != nil {
		return err
	}
	before, rest, hasBegin := strings.Cut(string(data), tableBegin)
	_, after, hasEnd := strings.Cut(rest, tableEnd)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s: no marks %q and %q", page, tableBegin, tableEnd)
	}
	return os.WriteFile(page, []byte(before+tableBegin+table+tableEnd+after), 0o600)
}
