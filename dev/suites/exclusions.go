package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed exclusions.txt
var exclusionList string

// exclusion is a test with permission to fail.
type exclusion struct{ suite, test, reason string }

// parseExclusions reads both lists: exclusions.txt and fakes.txt.
func parseExclusions() ([]exclusion, error) {
	all, err := parseList("exclusions.txt", exclusionList, checkVerb)
	if err != nil {
		return nil, err
	}
	ofFakes, err := parseList(fakesFile, fakeList, checkClass)
	return append(all, ofFakes...), err
}

// parseList reads lines of a suite, a test and a reason, separated by tabs. Empty lines and lines beginning with # are skipped.
func parseList(file, list string, check func(exclusion) error) ([]exclusion, error) {
	var all []exclusion
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || slices.Contains(fields, "") {
			return nil, fmt.Errorf("%s: %q is not a suite, a test and a reason, separated by tabs", file, line)
		}
		one := exclusion{fields[0], fields[1], fields[2]}
		if err := check(one); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func checkVerb(e exclusion) error {
	if isBasicVerb(e.test) {
		return fmt.Errorf("%q tests get, list, watch, create or update, which must pass", e.test)
	}
	return nil
}

func checkClass(e exclusion) error {
	if class, _, _ := strings.Cut(e.reason, ":"); !slices.Contains(fakeClasses, class) {
		return fmt.Errorf("%q begins with none of %q", e.reason, fakeClasses)
	}
	return nil
}

// isBasicVerb reports whether the words of a test's name contain a verb without permitted exclusions.
func isBasicVerb(test string) bool {
	words := regexp.MustCompile(`[A-Z]?[a-z]+`).FindAllString(test, -1) // also of TestList
	return slices.ContainsFunc(words, func(word string) bool {
		return regexp.MustCompile(`(?i)^(get(s|ting)?|list(s|ing)?|watch(es|ing)?|creat(e|es|ing)|updat(e|es|ing))$`).MatchString(word)
	})
}

// maxExcluded is the largest permitted share of excluded tests in a suite.
const maxExcluded = 0.02

// summary counts the results of a report and lists failures.
type summary struct {
	passed   int
	repeated []string // tests that passed after a failure
	excluded []exclusion
	skipped  int
	failures []string // empty if the suite passes
}

// excludeAll excludes the failures of a test and of its subtests.
func (v *summary) excludeAll(r *report, e exclusion, listed map[string]bool) {
	before := len(v.excluded)
	for _, one := range r.with(failed) {
		if one.name == e.test || strings.HasPrefix(one.name, e.test+"/") {
			listed[one.name] = true
			v.excluded = append(v.excluded, exclusion{e.suite, one.name, e.reason})
		}
	}
	if len(v.excluded) == before {
		v.failures = append(v.failures, fmt.Sprintf("%s: listed, but does not fail", e.test))
	}
}

// summarize compares results with the exclusions of all suites. Errors are unlisted failures, listed tests that pass, are skipped
// or do not exist, and too many exclusions.
func summarize(r *report, exclusions []exclusion) *summary {
	v := &summary{skipped: len(r.with(skipped))}
	outcomes := map[string]outcome{} // the worst of each name, because specs may share a name
	for _, one := range r.results {
		if outcomes[one.name] != failed {
			outcomes[one.name] = one.outcome
		}
	}
	listed := map[string]bool{}
	for _, e := range exclusions {
		if e.suite != r.suite.name {
			continue
		}
		if r.suite.fakes {
			v.excludeAll(r, e, listed)
			continue
		}
		listed[e.test] = true
		switch outcomes[e.test] {
		case failed:
			v.excluded = append(v.excluded, e)
		case passed:
			v.failures = append(v.failures, fmt.Sprintf("%s: listed, but passes", e.test))
		case skipped:
			v.failures = append(v.failures, fmt.Sprintf("%s: listed, but skipped upstream", e.test))
		default:
			v.failures = append(v.failures, fmt.Sprintf("%s: listed, but there is no such test", e.test))
		}
	}
	total := 0
	for _, one := range r.results {
		switch {
		case one.outcome == passed:
			v.passed++
			if one.repeats > 0 {
				v.repeated = append(v.repeated, one.name)
			}
		case one.outcome == failed && !listed[one.name]:
			v.failures = append(v.failures, fmt.Sprintf("%s: failed: %s", one.name, one.message))
		}
		if one.outcome != skipped {
			total++
		}
	}
	if n := len(v.excluded); !r.suite.fakes && float64(n) > maxExcluded*float64(total) {
		v.failures = append(v.failures, fmt.Sprintf("%d of %d tests are excluded, which is more than 2 %%", n, total))
	}
	return v
}
