package probe

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// difference is a fault with outcomes that must not differ.
type difference struct {
	probe   *probe
	fault   fault
	results [2]outcome
}

func (f difference) String() string {
	return fmt.Sprintf("%s %s: %s\n\treal server: %s\n\tapitest: %s", f.probe.verb(), f.probe.title(), f.fault, f.results[0].text(), f.results[1].text())
}

// key returns the write and the field without indexes.
func (f difference) key() string {
	return f.probe.verb() + " " + f.probe.title() + " " + indexes.ReplaceAllString(f.fault.field(), "")
}

func (o outcome) text() string {
	return fmt.Sprintf("%d %s %q %.200q", o.code, o.reason, strings.Join(o.causes, ", "), o.message)
}

// Row has the counts of a resource or subresource.
type Row struct {
	Fields, Complete                   int
	Cases, Rejected, Warned, Differing int
}

// Report is the result of a run.
type Report struct {
	Rows       map[string]*Row
	Unnoticed  []difference // rejected by the real server, accepted by apitest without a warning for the field
	TooStrict  []difference // rejected by apitest, accepted by the real server
	OtherCause []difference // rejected by both for different causes
}

func (r *Report) add(p *probe, f fault, results [2]outcome) {
	row := r.Rows[p.title()]
	if row == nil {
		row = &Row{}
		row.Fields, row.Complete = p.countFields()
		r.Rows[p.title()] = row
	}
	row.Cases++
	want := results[0]
	got := results[1]
	warned := isWarned(f, got.warnings)
	found := difference{probe: p, fault: f, results: results}
	if !want.accepted() {
		row.Rejected++
	}
	switch {
	case want.code == http.StatusConflict: // with another writer of the server
	case !want.accepted() && got.accepted() && warned:
		row.Warned++
	case !want.accepted() && got.accepted():
		row.Differing++
		r.Unnoticed = append(r.Unnoticed, found)
	case want.accepted() && !got.accepted() && !strings.HasSuffix(f.field(), "nodePort"): // a dry run allocates no ports
		row.Differing++
		r.TooStrict = append(r.TooStrict, found)
	case !want.accepted() && !hasCauses(want, got):
		r.OtherCause = append(r.OtherCause, found)
	}
}

// hasCauses reports whether two rejections have the same code, reason and causes, except for causes in fields that apitest warns about.
func hasCauses(want, got outcome) bool {
	isMissing := func(cause string) bool {
		_, field, _ := strings.Cut(cause, " ")
		isBelow := func(text string) bool { // the server leaves out indexes of some lists
			return isWarnedField(indexes.ReplaceAllString(field, ""), []string{indexes.ReplaceAllString(text, "")})
		}
		return !slices.Contains(got.causes, cause) && !slices.ContainsFunc(got.warnings, isBelow)
	}
	isExtra := func(cause string) bool { return !slices.Contains(want.causes, cause) }
	return want.code == got.code && want.reason == got.reason && !slices.ContainsFunc(want.causes, isMissing) && !slices.ContainsFunc(got.causes, isExtra)
}

var notValidated = regexp.MustCompile(`^apitest: (.+) was not validated$`)

// isWarned reports whether a warning names the field of a fault, a field around it or a field inside.
func isWarned(f fault, warnings []string) bool { return isWarnedField(f.field(), warnings) }

func isWarnedField(field string, warnings []string) bool {
	return slices.ContainsFunc(warnings, func(text string) bool {
		parts := notValidated.FindStringSubmatch(text)
		return parts != nil && (isWithin(field, parts[1]) || isWithin(parts[1], field))
	})
}

// isWithin reports whether a path is equal to outer or below it.
func isWithin(path, outer string) bool {
	rest, found := strings.CutPrefix(path, outer)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Group returns the differences by write and field without indexes, with an example each.
func Group(differences []difference) string {
	examples := map[string]difference{}
	counts := map[string]int{}
	for _, f := range differences {
		key := f.key()
		if _, known := examples[key]; !known {
			examples[key] = f
		}
		counts[key]++
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(examples)) {
		fmt.Fprintf(&text, "%d x %s\n", counts[key], examples[key])
	}
	return text.String()
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// Table returns the rows as a table in Markdown.
func (r *Report) Table() string {
	var text strings.Builder
	text.WriteString("| resource | fields | complete | cases | rejected by the real server | of these accepted with a warning | differing |\n|---|---|---|---|---|---|---|\n")
	sum := Row{}
	for _, name := range slices.Sorted(maps.Keys(r.Rows)) {
		row := r.Rows[name]
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %d | %d |\n", name, row.Fields, row.Complete, row.Cases, row.Rejected, row.Warned, row.Differing)
		sum = Row{sum.Fields + row.Fields, sum.Complete + row.Complete, sum.Cases + row.Cases, sum.Rejected + row.Rejected, sum.Warned + row.Warned, sum.Differing + row.Differing}
	}
	fmt.Fprintf(&text, "| all | %d | %d | %d | %d | %d | %d |\n", sum.Fields, sum.Complete, sum.Cases, sum.Rejected, sum.Warned, sum.Differing)
	return text.String()
}
