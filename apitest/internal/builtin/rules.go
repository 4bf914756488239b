package builtin

import (
	_ "embed" // rules.txt
	"slices"
	"strings"
	"sync"
)

//go:embed rules.txt
var rulesText string

// A ruleTable has the content of rules.txt: by Go type or resource[/subresource], the fields with complete rules. Fields of a
// resource are paths without indexes. A field of a type that is not listed is not validated.
type ruleTable map[string]map[string]*fieldRules

// fieldRules are the rules of a field, such as "required" or "min=0".
type fieldRules struct {
	any       bool // every value is valid, with all fields below
	unchecked bool // not validated in this resource
	rules     []rule
}

// rule is a rule with its arguments: the values of an enum, a bound or a key.
type rule struct {
	name string
	args []string
}

var complete = sync.OnceValue(func() ruleTable { return parseRules(rulesText) })

// parseRules parses rules.txt. A line without indentation is a section: a Go type of the recorded types, or a resource. Each line
// below has fields, then optionally a colon and their rules.
func parseRules(text string) ruleTable {
	table := ruleTable{}
	var section map[string]*fieldRules
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), "#")
		switch {
		case strings.TrimSpace(line) == "":
		case line[0] != '\t':
			name := strings.TrimSpace(line)
			if table[name] == nil {
				table[name] = map[string]*fieldRules{}
			}
			section = table[name]
		default:
			names, text, _ := strings.Cut(line, ":")
			rules := parseFieldRules(strings.Fields(text))
			for _, name := range strings.Fields(names) {
				section[name] = rules
			}
		}
	}
	return table
}

func parseFieldRules(words []string) *fieldRules {
	all := &fieldRules{}
	for _, word := range words {
		name, args, _ := strings.Cut(word, "=")
		switch name {
		case "any":
			all.any = true
		case "unchecked":
			all.unchecked = true
		default:
			all.rules = append(all.rules, rule{name: name, args: slices.DeleteFunc(strings.Split(args, "|"), func(s string) bool { return s == "" })})
		}
	}
	return all
}
