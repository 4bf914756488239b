package builtin

import (
	_ "embed" // rules.txt
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

//go:embed rules.txt
var rulesText string

// RulesVersion is the minor version of Kubernetes that rules.txt and the cases of package probe are from.
const RulesVersion = "1.36"

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

// apply adds the errors of a field's rules. An empty value of an optional field that is not a pointer counts as absent.
func (w *walk) apply(rules *fieldRules, at *field.Path, parent object, value, old any, isPointer bool) {
	c := &checker{}
	defer func() { w.errs = append(w.errs, c.errs...) }()
	isEmpty := isZero(value)
	for _, r := range rules.rules {
		switch r.name {
		case "created": // the rules after it are those of creations
			if w.isUpdate {
				return
			}
		case "required":
			if _, isObject := value.(object); isEmpty || isObject && isUnset("", value) {
				c.add(field.Required(at, ""))
				return
			}
		case "requiredIf":
			if isEmpty && parent[r.args[0]] == r.args[1] {
				c.add(field.Required(at, ""))
			}
		case "absentIf":
			if !isEmpty && parent[r.args[0]] == r.args[1] {
				c.invalid(at, value, "not allowed with this "+r.args[0])
			}
		case "present":
			if value == nil {
				c.add(field.Required(at, ""))
			}
		case "notEmpty":
			if isEmpty {
				c.invalid(at, value, "must not be empty")
			}
		case "immutable":
			if w.isUpdate && isChanged(value, old) {
				c.invalid(at, value, "field is immutable")
			}
		case "grows":
			if before, _ := old.(int64); before > 0 && nested.Int64(object{"": value}, "") < before {
				c.invalid(at, value, "cannot be decremented")
			}
		case "atMost":
			for _, sibling := range r.args {
				if nested.Int64(object{"": value}, "") > nested.Int64(parent, sibling) {
					c.invalid(at, value, "cannot be greater than "+sibling)
				}
			}
		default:
			if value != nil && (!isEmpty || isPointer || isNumber(value)) {
				c.rule(r, at, value)
			}
		}
	}
}

func isNumber(value any) bool {
	_, ok := value.(int64)
	return ok
}

// isUnset reports whether a value is that of an unset field that Go encodes nevertheless.
func isUnset(typ string, value any) bool {
	if fields, ok := value.(object); ok {
		for _, field := range fields {
			if !isUnset("", field) {
				return false
			}
		}
		return true
	}
	return isZero(value) || value == false || value == "0" && typ == "api/resource.Quantity"
}

// isZero reports whether a value is absent, empty or 0.
func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case int64:
		return value == 0
	case []any:
		return len(value) == 0
	case object:
		return len(value) == 0
	}
	return false
}

// rule adds the errors of one rule. Lists are checked item by item.
func (c *checker) rule(r rule, at *field.Path, value any) {
	switch value := value.(type) {
	case []any:
		switch r.name {
		case "set":
			c.unique(at, value)
			return
		case "maxItems":
			if limit, _ := strconv.Atoi(r.args[0]); len(value) > limit {
				c.invalid(at, value, "too many items")
			}
			return
		case "conditionTypes":
			for i, condition := range nested.Maps(object{"": value}, "") {
				c.invalid(at.Index(i).Child("Type"), condition["type"], validation.IsQualifiedName(nested.String(condition, "type"))...)
			}
			return
		case "headerNames":
			for _, header := range nested.Maps(object{"": value}, "") {
				c.invalid(at, header["name"], validation.IsHTTPHeaderName(nested.String(header, "name"))...)
			}
			return
		}
		for i, item := range value {
			c.rule(r, at.Index(i), item)
		}
	case int64:
		c.numberRule(r, at, value)
	case string:
		c.stringRule(r, at, value)
	case object:
		if r.name == "labels" {
			c.add(metavalidation.ValidateLabels(nested.StringMap(object{"": value}, ""), at)...)
		}
	}
}

func (c *checker) unique(at *field.Path, items []any) {
	for i, item := range items {
		if slices.Contains(items[:i], item) {
			c.add(field.Duplicate(at.Index(i), item))
		}
	}
}

func (c *checker) numberRule(r rule, at *field.Path, n int64) {
	switch r.name {
	case "port", "portOrName":
		c.invalid(at, n, validation.IsValidPortNum(int(n))...)
	case "min", "max":
		bound, _ := strconv.ParseInt(r.args[0], 10, 64)
		if r.name == "min" && n < bound || r.name == "max" && n > bound {
			c.invalid(at, n, r.name+" "+r.args[0])
		}
	}
}

// textRules are the rules of strings that return messages.
var textRules = map[string]func(string) []string{
	"label":      validation.IsDNS1123Label,
	"subdomain":  validation.IsDNS1123Subdomain,
	"portName":   validation.IsValidPortName,
	"portOrName": validation.IsValidPortName,
	"qualified":  validation.IsQualifiedName,
	"configKey":  validation.IsConfigMapKey,
	"envName":    validation.IsRelaxedEnvVarName,
	"withGroup":  withGroup,
	"ipOrNone":   ipOrNone,
	"trimmed":    trimmed,

	"relativePath": relativePath,
}

func (c *checker) stringRule(r rule, at *field.Path, value string) {
	switch {
	case r.name == "enum" || r.name == "optionalEnum" && value != "":
		if !slices.Contains(r.args, value) {
			c.add(field.NotSupported(at, value, r.args))
		}
	case r.name == "fieldPath":
		if !fieldPath().MatchString(value) {
			c.invalid(at, value, "not a field of a pod")
		}
	case r.name == "resourceField":
		if !resourceField().MatchString(value) {
			c.add(field.NotSupported(at, value, []string{}))
		}
	case textRules[r.name] != nil:
		c.invalid(at, value, textRules[r.name](value)...)
	}
}

// fieldPath matches the fields of a pod that an environment variable may have.
var fieldPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?))$`)
})

// resourceField matches the resources that an environment variable may have.
var resourceField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$`)
})

func ipOrNone(value string) []string {
	if _, err := netip.ParseAddr(value); err != nil && value != "None" {
		return []string{"must be a valid IP address"}
	}
	return nil
}

func trimmed(value string) []string {
	if strings.TrimSpace(value) != value {
		return []string{"must not have leading or trailing whitespace"}
	}
	return nil
}

func relativePath(value string) []string {
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "..") || slices.Contains(strings.Split(value, "/"), "..") {
		return []string{"must be a relative path without '..'"}
	}
	return nil
}

func withGroup(value string) []string {
	if group, version, found := strings.Cut(value, "/"); !found || group == "" || version == "" || strings.Contains(version, "/") {
		return []string{"apiVersion must specify API group"}
	}
	return nil
}
