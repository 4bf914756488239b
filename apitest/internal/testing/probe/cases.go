package probe

import (
	_ "embed" // cases.txt, differences.txt
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// casesText has cases of upstream's validation tests. A line RESOURCE INDEX VERB has the write: the seed of that index among the
// resource's seeds, and create or update. Each line below it is a case: CHANGES -> OUTCOME. Changes are PATH=YAML, joined by " && ".
// Without a value the field is removed. A word LONGn is a text of n characters. The outcome is the real server's code with the
// types and fields of the causes.
//
//go:embed cases.txt
var casesText string

// differencesText has the cases whose outcome differs on servers of a minor version other than builtin.RulesVersion. A case that
// breaks this package's rule there has the violation beside it. A line is VERSION: WRITE: CASE. Lines VERSION: probe: FAULT have the
// drawn faults that break the rule.
//
//go:embed differences.txt
var differencesText string

// upstreamCase is a line of cases.txt.
type upstreamCase struct {
	line    int // index in the lines of casesText
	write   string
	changes string
	outcome string
	faults  []fault
}

var (
	writeLine  = regexp.MustCompile(`^\S+ \d+ (create|update)$`)
	pathPart   = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)
	longText   = regexp.MustCompile(`LONG(\d+)`)
	outcomeOf  = " -> "
	changesAnd = " && "
)

// readCases parses cases.txt.
func readCases(t testing.TB) (cases []upstreamCase) {
	t.Helper()
	write := ""
	for i, line := range strings.Split(casesText, "\n") {
		switch {
		case line == "" || line[0] == '#':
		case writeLine.MatchString(line):
			write = line
		default:
			c := upstreamCase{line: i, write: write}
			c.changes, c.outcome, _ = strings.Cut(line, outcomeOf)
			for change := range strings.SplitSeq(c.changes, changesAnd) {
				path, text, found := strings.Cut(change, "=")
				require.True(t, found, line)
				f := fault{path: parsePath(path)}
				if text != "" {
					text = longText.ReplaceAllStringFunc(text, func(word string) string {
						n, _ := strconv.Atoi(strings.TrimPrefix(word, "LONG"))
						return strings.Repeat("x", n)
					})
					f.value = decodeYAML(t, text)
				}
				c.faults = append(c.faults, f)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func parsePath(text string) (path []any) {
	for _, part := range pathPart.FindAllString(text, -1) {
		if index, err := strconv.Atoi(strings.Trim(part, "[]")); err == nil && part[0] == '[' {
			path = append(path, index)
		} else {
			path = append(path, part)
		}
	}
	return path
}

func decodeYAML(t testing.TB, text string) any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte("value: " + text))
	require.NoError(t, err, text)
	return decodeObject(t, content)["value"]
}

// prepareCases returns the probe of each write of cases.
func (l *lab) prepareCases(cases []upstreamCase) map[string]*probe {
	wanted := map[string]bool{}
	for _, c := range cases {
		wanted[strings.Split(strings.Fields(c.write)[0], "/")[0]] = true
	}
	probes := map[string]*probe{}
	indexes := map[string]int{}
	for _, s := range readSeeds(l.t) {
		if !wanted[s.name()] {
			continue
		}
		for _, p := range l.prepare(s) {
			probes[fmt.Sprintf("%s %d %s", p.title(), indexes[s.name()], p.verb())] = p
		}
		indexes[s.name()]++
	}
	return probes
}

// recorded returns an outcome as in cases.txt.
func (o outcome) recorded() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", o.code, strings.Join(o.causes, ", ")))
}
