package readiness_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

var writeDocs = flag.Bool("write", false, "write docs/readiness.tsv and the tables of docs/READINESS.md")

const (
	statusesFile = "../../../docs/readiness.tsv"
	document     = "../../../docs/READINESS.md"
)

// row is a line of docs/readiness.tsv: the statuses of an object.
type row struct {
	object, kstatus, argo, ours, field string
	kstatusReason, argoReason          string
}

// reference returns the number of a reason in the document, such as k3.
func reference(letter string, differences []difference, reason string) string {
	if reason == "" {
		return ""
	}
	i := slices.IndexFunc(differences, func(d difference) bool { return d.reason == reason })
	return fmt.Sprintf("%s%d", letter, i+1)
}

func (r *row) line() string {
	return strings.Join([]string{
		r.object, cmp.Or(r.kstatus, "error"), cmp.Or(r.argo, "-"), r.ours, r.field,
		reference("k", kstatusDifferences, r.kstatusReason), reference("a", argoDifferences, r.argoReason),
	}, "\t")
}

// newRow compares an object of the tests of kstatus or, with a health, of Argo CD.
func newRow(t *testing.T, name, health string, obj *unstructured.Object) *row {
	t.Helper()
	r := &row{object: name, argo: health}
	r.kstatus, r.kstatusReason = compareKstatus(t, name, obj)
	ours := ourStatus(t, obj)
	r.ours = string(ours.Status)
	r.field = ours.Field
	if health == "" || isEqualHealth(health, ours.Status) {
		return r
	}
	if r.argoReason = reasonFor(argoDifferences, obj, health, ours); r.argoReason == "" {
		assert.Fail(t, "another status than Argo CD's", "%s: Argo CD %s, anykind %s (%s)", name, health, ours, ours.Field)
	}
	return r
}

func rows(t *testing.T) (all []*row) {
	t.Helper()
	for name, obj := range kstatusObjects(t) {
		all = append(all, newRow(t, "kstatus "+name, "", obj))
	}
	for _, theirs := range argoObjects(t) {
		all = append(all, newRow(t, theirs.name, theirs.health, theirs.object))
	}
	slices.SortFunc(all, func(a, b *row) int { return strings.Compare(a.line(), b.line()) })
	return all
}

// differenceTable returns the table of a peer's differences: their number, reason and count of objects.
func differenceTable(letter string, differences []difference, all []*row, reason func(*row) string) string {
	text := "| | objects | reason |\n| --- | --- | --- |\n"
	for i, each := range differences {
		count := 0
		for _, r := range all {
			if reason(r) == each.reason {
				count++
			}
		}
		text += fmt.Sprintf("| %s%d | %d | %s |\n", letter, i+1, count, each.reason)
	}
	return text
}

// totals returns the table of agreement: the status of each peer against anykind's.
func totals(all []*row, theirs func(*row) string) string {
	counts := map[string]map[string]int{}
	for _, r := range all {
		status := theirs(r)
		if counts[status] == nil {
			counts[status] = map[string]int{}
		}
		counts[status][r.ours]++
	}
	columns := []string{"Current", "InProgress", "Failed", "Terminating", "Unknown"}
	text := "| | " + strings.Join(columns, " | ") + " |\n| --- |" + strings.Repeat(" --- |", len(columns)) + "\n"
	statuses := make([]string, 0, len(counts))
	for status := range counts {
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		text += "| " + status + " |"
		for _, column := range columns {
			text += fmt.Sprintf(" %d |", counts[status][column])
		}
		text += "\n"
	}
	return text
}

// replaceSection replaces the text between the comments of a section.
func replaceSection(t *testing.T, text, name, content string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, "<!-- "+name+" -->\n")
	require.True(t, found, name)
	_, after, found := strings.Cut(rest, "<!-- end -->")
	require.True(t, found, name)
	return before + "<!-- " + name + " -->\n" + content + "<!-- end -->" + after
}

// TestCompute_MatchesDocument fails when the status of an object changes, or a peer's. The flag -write accepts the change.
func TestCompute_MatchesDocument(t *testing.T) {
	all := rows(t)
	require.Greater(t, len(all), 1200)
	lines := "object\tkstatus\tArgo CD\tanykind\tfield\tdifference to kstatus\tdifference to Argo CD\n"
	for _, r := range all {
		lines += r.line() + "\n"
	}
	old, err := os.ReadFile(document)
	require.NoError(t, err)
	byArgo := slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return r.argo == "" })
	text := replaceSection(t, string(old), "kstatus", totals(all, func(r *row) string { return cmp.Or(r.kstatus, "error") })+"\n"+
		differenceTable("k", kstatusDifferences, all, func(r *row) string { return r.kstatusReason }))
	text = replaceSection(t, text, "argocd", totals(byArgo, func(r *row) string { return r.argo })+"\n"+
		differenceTable("a", argoDifferences, all, func(r *row) string { return r.argoReason }))
	if *writeDocs {
		require.NoError(t, os.WriteFile(statusesFile, []byte(lines), 0o644))
		require.NoError(t, os.WriteFile(document, []byte(text), 0o644))
		return
	}
	recorded, err := os.ReadFile(statusesFile)
	require.NoError(t, err)
	assert.Equal(t, string(recorded), lines, "make readiness accepts the change")
	assert.Equal(t, string(old), text, "make readiness accepts the change")
	for _, each := range argoDifferences {
		assert.True(t, slices.ContainsFunc(all, func(r *row) bool { return r.argoReason == each.reason }), each.reason)
	}
}
