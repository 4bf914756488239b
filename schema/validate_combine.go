package schema

import (
	"fmt"
	"strings"
)

// combinations validates allOf, anyOf, oneOf and not.
func (v *validator) combinations(value any, s *Schema) {
	for _, one := range s.AllOf {
		v.value(value, one.resolve())
	}
	if len(s.AnyOf) > 0 && v.countMatches(value, s.AnyOf, 1) == 0 {
		v.noMatch("anyOf", value, s.AnyOf)
	}
	if len(s.OneOf) > 0 {
		switch count := v.countMatches(value, s.OneOf, 2); count {
		case 0:
			v.noMatch("oneOf", value, s.OneOf)
		case 1:
		default:
			v.reject("oneOf", "matches more than one of the "+fmt.Sprint(len(s.OneOf))+" schemas of oneOf, the schema says exactly one", exclusiveHint(s.OneOf))
		}
	}
	if s.Not != nil && v.countMatches(value, []*Schema{s.Not}, 1) == 1 {
		v.reject("not", "matches the schema in not, which it must not match", notHint(s.Not))
	}
}

// countMatches returns the number of schemas that accept a value, at most limit.
func (v *validator) countMatches(value any, schemas []*Schema, limit int) int {
	failed := v.failed
	rules := v.ruleCount
	count := 0
	v.trial++
	for _, one := range schemas {
		v.failed = 0
		v.value(value, one.resolve())
		if v.failed == 0 {
			if count++; count == limit {
				break
			}
		}
	}
	v.trial--
	v.failed = failed
	v.ruleCount = rules
	return count
}

// maxBranches bounds the schemas of anyOf and oneOf in a hint.
const maxBranches = 4

// noMatch reports a value without a matching schema in anyOf or oneOf, with the first problem by each schema.
func (v *validator) noMatch(keyword string, value any, schemas []*Schema) {
	v.failed++
	if v.trial > 0 {
		return
	}
	problems := v.problems
	failed := v.failed
	var reasons []string
	for _, one := range schemas[:min(len(schemas), maxBranches)] {
		v.problems = nil
		v.value(value, one.resolve())
		for _, problem := range v.problems {
			if !problem.IsWarning {
				reasons = append(reasons, problem.String())
				break
			}
		}
	}
	if len(schemas) > maxBranches {
		reasons = append(reasons, "…")
	}
	v.problems = problems
	v.failed = failed
	v.add(Problem{Keyword: keyword, Message: fmt.Sprintf("matches none of the %d schemas of %s", len(schemas), keyword), Hint: "either " + strings.Join(reasons, ", or ")})
}

// exclusiveHint names the alternative fields of oneOf.
func exclusiveHint(schemas []*Schema) string {
	var names []string
	for _, one := range schemas {
		names = append(names, one.resolve().Required...)
	}
	if len(names) == 0 || len(names) != len(schemas) {
		return ""
	}
	return "set exactly one of " + strings.Join(names, ", ")
}

func notHint(not *Schema) string {
	if names := not.resolve().Required; len(names) > 0 {
		return "leave out " + strings.Join(names, " or ")
	}
	return ""
}
