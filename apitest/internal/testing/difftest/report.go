package difftest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var indexes = regexp.MustCompile(`^(body|events)(\.items\[\d+\]|\[\d+\]\.object)|\[\d+\]`)

// signature returns the grouping key of a diff line: class, kind and field path without indexes.
func signature(op Operation, line string) string {
	place, _, _ := strings.Cut(indexes.ReplaceAllString(line, ""), ": ")
	return op.Class + " " + op.Kind + " " + place
}

// Describe returns the unexplained differences with an example per signature, the most frequent first.
func (r *Result) Describe(examples int) string {
	counts := map[string]int{}
	example := map[string]string{}
	for _, one := range r.Unexplained {
		for _, line := range one.lines {
			key := signature(one.op, line)
			counts[key]++
			if example[key] == "" {
				op := one.op
				example[key] = fmt.Sprintf("operation %d (%s, fault %s): %s %s?%s %s %s\n\tbody %s\n\t%s", op.ID, op.Verb, op.Fault, op.Method, op.Path, op.Query,
					op.ContentType, op.Accept, op.Body, line)
			}
		}
	}
	keys := sortedKeys(counts)
	slices.SortStableFunc(keys, func(a, b string) int { return counts[b] - counts[a] })
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d: %d of %d operations differ in what is not permitted\n", r.Seed, len(r.Unexplained), r.Operations)
	for _, key := range keys[:min(len(keys), examples)] {
		fmt.Fprintf(&text, "%d × %s\n\t%s\n", counts[key], key, example[key])
	}
	if len(keys) > examples {
		fmt.Fprintf(&text, "and %d more kinds of differences\n", len(keys)-examples)
	}
	return text.String()
}

// Of returns the number of operations of a class, and the number of operations with a permitted difference.
func (r *Result) Of(class string) (operations, permitted int) {
	for key, count := range r.Counts {
		if key.class == class {
			operations += count
			permitted += r.Differences[key]
		}
	}
	return operations, permitted
}

// Fewest returns the number of combinations of verb, class of kinds and class of faults, and the combination with the fewest
// operations.
func (r *Result) Fewest() (combinations int, combination string, count int) {
	all := verbs()
	for _, class := range r.classes {
		for _, name := range sortedKeys(all) {
			for _, fault := range append([]string{faultNone}, all[name].faults...) {
				n := r.Counts[task{class, name, fault}]
				if combinations == 0 || n < count {
					combination = fmt.Sprintf("%s %s, fault %s", class, name, fault)
					count = n
				}
				combinations++
			}
		}
	}
	return combinations, combination, count
}

// Summary returns the counts as a paragraph.
func (r *Result) Summary() string {
	var text strings.Builder
	combinations, combination, count := r.Fewest()
	fmt.Fprintf(&text, "seed %d: %d operations, %d of them on custom resources of the corpus; %d restarts, %d compactions; each of the %d combinations of a verb, a class of kinds and a class of faults at least %d times (%s)\n",
		r.Seed, r.Operations, r.Corpus, r.Restarts, r.Compactions, combinations, count, combination)
	for _, p := range r.permissions {
		fmt.Fprintf(&text, "permitted, line %d: %d operations: %s\n", p.line, p.count, p.reason)
	}
	return text.String()
}

// Unused returns the permissions without a matching difference.
func (r *Result) Unused() (reasons []string) {
	for _, p := range r.permissions {
		if p.count == 0 {
			reasons = append(reasons, fmt.Sprintf("line %d: %s", p.line, p.reason))
		}
	}
	return reasons
}

// Table returns the fidelity table of the documentation: operations and permitted differences by class and verb, and the reasons.
func (r *Result) Table() string {
	type cell struct{ operations, permitted int }
	cells := map[[2]string]cell{}
	for key, count := range r.Counts {
		c := cells[[2]string{key.verb, key.class}]
		cells[[2]string{key.verb, key.class}] = cell{c.operations + count, c.permitted + r.Differences[key]}
	}
	var text strings.Builder
	combinations, _, fewest := r.Fewest()
	fmt.Fprintf(&text, "Seed %d, %d operations, %d of them on custom resources of public projects, %d restarts, %d compactions; each of the %d combinations of\n"+
		"a verb, a class of kinds and a class of faults was played at least %d times:\n\n", r.Seed, r.Operations, r.Corpus, r.Restarts, r.Compactions, combinations, fewest)
	text.WriteString("| verb | on custom resources | different | on built-in kinds | different |\n|---|---|---|---|---|\n")
	for _, name := range append(sortedKeys(verbs()), "final") {
		custom := cells[[2]string{name, "custom"}]
		builtin := cells[[2]string{name, "builtin"}]
		if name == "final" {
			name = "list at the end"
		}
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d |\n", name, custom.operations, custom.permitted, builtin.operations, builtin.permitted)
	}
	custom, customPermitted := r.Of("custom")
	builtin, builtinPermitted := r.Of("builtin")
	fmt.Fprintf(&text, "| all | %d | %d | %d | %d |\n\n", custom, customPermitted, builtin, builtinPermitted)
	text.WriteString("| what may differ, and why | operations |\n|---|---|\n")
	for _, p := range r.permissions {
		fmt.Fprintf(&text, "| %s | %d |\n", p.reason, p.count)
	}
	return text.String()
}
