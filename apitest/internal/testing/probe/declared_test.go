package probe

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/internal/testing/race"
)

// confirmedFile has the confirmed rules of stage alpha.
const confirmedFile = "../../builtin/confirmed.txt"

// declaredCase is a declared rule of a field that a write of a seed reaches.
type declaredCase struct {
	probe *probe
	rule  builtin.DeclaredRule
	line  string // in confirmedFile
	path  []any
	field *openapi
}

// TestDeclared_ConfirmedByServer breaks each rule that the Go types declare, and requires the real server's error of apitest. On a
// server of RulesVersion, confirmed.txt has the rules of stage alpha with that error. Environment variable ANYKIND_APITEST_CONFIRM=1
// writes the file.
func TestDeclared_ConfirmedByServer(t *testing.T) {
	race.Skip(t)
	sandbox, double := bothServers(t)
	l := newLab(t, sandbox, double)
	var cases []declaredCase
	for _, s := range readSeeds(t) {
		for _, p := range l.prepare(s) {
			cases = append(cases, l.declaredCases(p)...)
		}
	}
	var mu sync.Mutex
	rules := map[string]bool{} // by line, whether confirmed
	concurrently(cases, func(c declaredCase) {
		mu.Lock()
		isConfirmed := rules[c.line]
		rules[c.line] = isConfirmed
		mu.Unlock()
		if isConfirmed {
			return
		}
		broken := l.breakRule(c)
		mu.Lock()
		defer mu.Unlock()
		if broken == nil {
			return
		}
		rules[c.line] = true
		if c.rule.IsInForce(c.line) {
			assert.True(t, c.isBroken(broken.results[1]), "%s: %s", c.line, broken)
		}
	})
	confirmed := slices.Sorted(maps.Keys(rules))
	confirmed = slices.DeleteFunc(confirmed, func(line string) bool { return !rules[line] })
	maps.DeleteFunc(rules, func(_ string, isConfirmed bool) bool { return isConfirmed })
	t.Logf("the server confirms %d rules, but not %q", len(confirmed), slices.Sorted(maps.Keys(rules)))
	if sandbox.minor(t) == builtin.RulesVersion {
		compareConfirmed(t, cases, confirmed)
	}
}

// compareConfirmed compares the confirmed rules of stage alpha with confirmed.txt, or writes the file.
func compareConfirmed(t *testing.T, cases []declaredCase, confirmed []string) {
	t.Helper()
	var lines []string
	for _, c := range cases {
		if c.rule.Stage == "alpha" && slices.Contains(confirmed, c.line) {
			lines = append(lines, c.line)
		}
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	if os.Getenv("ANYKIND_APITEST_CONFIRM") != "" {
		require.NoError(t, os.WriteFile(confirmedFile, []byte(got), 0o644)) //nolint:gosec // a file of the repository
	}
	want, err := os.ReadFile(confirmedFile)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// declaredCases returns the declared rules of the fields that a write may change.
func (l *lab) declaredCases(p *probe) (cases []declaredCase) {
	add := func(typ, name string, path []any) {
		for _, rule := range builtin.DeclaredRules(typ, name) {
			if rule.Text == "immutable" && !p.update {
				continue
			}
			cases = append(cases, declaredCase{probe: p, rule: rule, line: rule.Line(typ, name), path: path, field: l.schemas.at(p.schema, path)})
		}
	}
	seen := map[string]bool{}
	d := &drawer{schemas: l.schemas, add: func(path []any) func(fault) {
		name, isField := path[len(path)-1].(string)
		if p.mayChange(path) && isField && !seen[pathText(path)] {
			seen[pathText(path)] = true
			add(goType(l.schemas.at(p.schema, path[:len(path)-1]).name), name, path)
			add(goType(l.schemas.at(p.schema, path).name), "*", path)
		}
		return nil
	}}
	d.object(p.schema, nil, p.object(), nil, 0)
	return cases
}

// goType returns the Go type of an OpenAPI definition "io.k8s.api.core.v1.Pod" as recorded: "api/core/v1.Pod".
func goType(definition string) string {
	path := strings.Split(strings.TrimPrefix(definition, "io.k8s."), ".")
	last := len(path) - 1
	return strings.Join(path[:last], "/") + "." + path[last]
}

// at returns the schema of the field or item at a path.
func (s *schemas) at(of *openapi, path []any) *openapi {
	for _, part := range path {
		of = s.resolve(of)
		name, _ := part.(string)
		switch {
		case name == "":
			of = of.Items
		case of.Properties[name] != nil:
			of = of.Properties[name]
		default:
			of = of.AdditionalProperties
		}
	}
	return s.resolve(of)
}

// breakRule returns a fault for which the real server has the rule's error, nil without one.
func (l *lab) breakRule(c declaredCase) *difference {
	d := &drawer{schemas: l.schemas}
	values := append(d.values(c.field, nil), nil, strings.Repeat("x", 2000))
	if _, limit, _ := strings.Cut(c.rule.Text, "maxItems="); limit != "" {
		count, _ := strconv.Atoi(limit)
		values = append(values, slices.Repeat([]any{l.schemas.plausible(c.field.Items)}, count+1))
	}
	if _, members, _ := strings.Cut(c.rule.Text, "unionMember="); members != "" {
		two := map[string]any{}
		for _, name := range strings.Split(members, "|")[:2] {
			two[name] = l.schemas.plausible(c.field.Properties[name])
		}
		values = append(values, two)
	}
	for _, value := range values {
		f := fault{path: c.path, value: value}
		if results, played := l.play(c.probe, f); played && c.isBroken(results[0]) {
			return &difference{probe: c.probe, fault: f, results: results}
		}
	}
	return nil
}

// isBroken reports whether an outcome has the rule's error for the field, or for an item of a list that must be unique.
func (c declaredCase) isBroken(o outcome) bool {
	want := string(c.rule.Cause) + " " + pathText(c.path)
	return slices.ContainsFunc(o.causes, func(cause string) bool {
		return cause == want || c.rule.Cause == field.ErrorTypeDuplicate && strings.HasPrefix(cause, want+"[")
	})
}
