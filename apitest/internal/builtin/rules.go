package builtin

import (
	"context"
	_ "embed" // rules.txt
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

//go:embed rules.txt
var rulesText string

// RulesVersion is the minor version of Kubernetes that rules.txt and the cases of package probe are from.
const RulesVersion = "1.36"

// wholeStruct names the rules of a struct as a whole in its section.
const wholeStruct = "*"

// A ruleTable has the content of rules.txt: by Go type or resource[/subresource], the fields with complete rules. Fields of a
// resource are paths without indexes. A field of a type that is not listed is not validated.
type ruleTable map[string]map[string]*fieldRules

// fieldRules are the rules of a field, such as "required" or "min=0".
type fieldRules struct {
	any       bool // every value is valid, with all fields below
	unchecked bool // not validated in this resource
	// emptyUnchecked is set if an empty list or map is not validated: it is decoded as absent, and a server distinguishes both.
	emptyUnchecked bool
	rules          []rule
}

// rule is a rule with its arguments: the values of an enum, a bound, a key or a pattern.
type rule struct {
	name    string
	args    []string
	pattern *regexp.Regexp // of only, onlyKeys, like and oneLike
}

// text returns the rule for messages: as in rules.txt, or with the text that programs match.
func (r rule) text() string {
	switch r.name {
	case "immutable", "frozen":
		return apivalidation.FieldImmutableErrorMsg
	case "min":
		return "must be greater than or equal to " + r.args[0]
	case "max":
		return "must be less than or equal to " + r.args[0]
	}
	return strings.TrimSuffix(r.name+"="+strings.Join(r.args, "|"), "=")
}

var complete = sync.OnceValue(func() ruleTable { return parseRules(rulesText) })

// parseRules parses rules.txt. A line without indentation is a section: a Go type of the recorded types, or a resource. Each line
// below has fields, then optionally a colon and their rules.
func parseRules(text string) ruleTable {
	table := ruleTable{}
	var section map[string]*fieldRules
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case line[0] != '\t':
			if table[line] == nil {
				table[line] = map[string]*fieldRules{}
			}
			section = table[line]
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
		case "emptyUnchecked":
			all.emptyUnchecked = true
		case "only", "onlyKeys", "like", "oneLike":
			all.rules = append(all.rules, rule{name: name, pattern: regexp.MustCompile(`^(?:` + args + `)$`)})
		default:
			all.rules = append(all.rules, rule{name: name, args: slices.DeleteFunc(strings.Split(args, "|"), func(s string) bool { return s == "" })})
		}
	}
	return all
}

// fieldValue is a field to be checked. old is its stored value.
type fieldValue struct {
	typ      string // the Go type with the field
	name     string
	at       *field.Path
	parent   object
	value    any
	old      any
	isUpdate bool
}

func (f *fieldValue) isEmpty() bool { return isZero(f.value) }

// fieldRule is a rule that depends on the presence of a field, on its stored value or on a sibling.
type fieldRule struct {
	cause    field.ErrorType
	isBroken func(r rule, f *fieldValue) bool
}

var fieldRuleTable = map[string]fieldRule{
	"required": {field.ErrorTypeRequired, func(_ rule, f *fieldValue) bool {
		_, isObject := f.value.(object)
		return f.isEmpty() || isObject && isUnset("", f.value)
	}},
	"requiredIf": {field.ErrorTypeRequired, func(r rule, f *fieldValue) bool {
		return f.isEmpty() && !isNumber(f.value) && f.parent[r.args[0]] == r.args[1]
	}},
	"requiredUnless": {field.ErrorTypeRequired, func(r rule, f *fieldValue) bool { return f.isEmpty() && isZero(f.parent[r.args[0]]) }},
	"presentIf": {field.ErrorTypeRequired, func(r rule, f *fieldValue) bool {
		return f.value == nil && f.parent[r.args[0]] == r.args[1]
	}},
	"requiredWith": {field.ErrorTypeRequired, func(r rule, f *fieldValue) bool { return f.isEmpty() && !isZero(f.parent[r.args[0]]) }},
	"filled":       {field.ErrorTypeRequired, func(_ rule, f *fieldValue) bool { return f.value == "" }},
	"present":      {field.ErrorTypeRequired, func(_ rule, f *fieldValue) bool { return f.value == nil }},
	"stated":       {field.ErrorTypeNotSupported, func(_ rule, f *fieldValue) bool { return f.isEmpty() }},
	"notEmpty":     {field.ErrorTypeInvalid, func(_ rule, f *fieldValue) bool { return f.isEmpty() }},
	"notEmptyIf":   {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool { return f.isEmpty() && f.parent[r.args[0]] == r.args[1] }},
	"absentIf":     {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool { return !f.isEmpty() && f.parent[r.args[0]] == r.args[1] }},
	"never":        {field.ErrorTypeInvalid, func(_ rule, f *fieldValue) bool { return !f.isEmpty() }},
	"excludes": {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool {
		isSet := func(sibling string) bool { return !isZero(f.parent[sibling]) }
		return !f.isEmpty() && slices.ContainsFunc(r.args, isSet)
	}},
	"forbiddenIf":     {field.ErrorTypeForbidden, func(r rule, f *fieldValue) bool { return f.value != nil && f.parent[r.args[0]] == r.args[1] }},
	"forbiddenUnless": {field.ErrorTypeForbidden, func(r rule, f *fieldValue) bool { return f.value != nil && f.parent[r.args[0]] != r.args[1] }},
	"immutable":       {field.ErrorTypeInvalid, func(_ rule, f *fieldValue) bool { return f.isUpdate && isChanged(f.value, f.old) }},
	"frozen":          {field.ErrorTypeForbidden, func(_ rule, f *fieldValue) bool { return f.isUpdate && isChanged(f.value, f.old) }},
	"grows":           {field.ErrorTypeInvalid, func(_ rule, f *fieldValue) bool { return number(f.value) < number(f.old) }},
	"atMost": {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool {
		isExceeded := func(sibling string) bool { return number(f.value) > number(f.parent[sibling]) }
		return slices.ContainsFunc(r.args, isExceeded)
	}},
	"atLeast": {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool {
		return f.value != nil && number(f.value) < number(f.parent[r.args[0]])
	}},
	"needs": {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool { return f.value != nil && !isNumber(f.parent[r.args[0]]) }},
	"above": {field.ErrorTypeInvalid, func(r rule, f *fieldValue) bool {
		return f.value != nil && number(f.value) <= number(f.parent[r.args[0]])
	}},
}

func number(value any) int64 {
	n, _ := value.(int64)
	return n
}

// apply adds the errors of a field's rules. An empty value of an optional field that is not a pointer counts as absent.
func (w *walk) apply(rules *fieldRules, f *fieldValue, isPointer bool) {
	c := &checker{}
	for _, r := range rules.rules {
		if r.name == "created" && w.isUpdate { // the rules after it are those of creations
			break
		}
		if check, found := fieldRuleTable[r.name]; found {
			if check.isBroken(r, f) {
				c.add(&field.Error{Type: check.cause, Field: f.at.String(), BadValue: f.value, Detail: r.text()})
				if check.cause == field.ErrorTypeRequired {
					break
				}
			}
			continue
		}
		if f.value != nil && (!f.isEmpty() || isPointer || isNumber(f.value)) {
			c.rule(r.withSchema(f.typ, f.name), f.at, f.value)
		}
	}
	w.errs = append(w.errs, c.errs...)
	if isChanged(f.value, f.old) {
		w.notValidated = append(w.notValidated, c.unknown...)
	}
}

// applyToStruct adds the errors of the rules of a struct as a whole. It reports whether the server checks the fields, too.
func (w *walk) applyToStruct(rules *fieldRules, at *field.Path, fields object) bool {
	for _, r := range rules.rules {
		set := slices.DeleteFunc(slices.Clone(r.args), func(name string) bool { return fields[name] == nil })
		switch {
		case r.name == "selector":
			w.errs = append(w.errs, metavalidation.ValidateLabelSelector(labelSelector(fields), metavalidation.LabelSelectorValidationOptions{}, at)...)
		case len(set) == 1 && r.name == "alone" && len(fields) > 1:
			w.errs = append(w.errs, field.Forbidden(at, set[0]+" excludes other fields"))
		case len(set) > 1 && r.name == "either":
			for _, name := range set {
				w.errs = append(w.errs, field.Forbidden(at.Child(name), "excludes the other"))
			}
		case len(set) == 0 && (r.name == "oneOf" || r.name == "someOf" || r.name == "either"):
			w.errs = append(w.errs, field.Required(at, ""))
		case len(set) > 1 && r.name == "oneOf":
			w.errs = append(w.errs, field.Forbidden(at.Child(set[1]), notExamined))
		case len(set) == 0 && (r.name == "exactlyOne" || r.name == "anyOf"), len(set) > 1 && (r.name == "exactlyOne" || r.name == "atMostOne"):
			w.errs = append(w.errs, field.Invalid(at, "", "one of "+strings.Join(r.args, ", ")+" must be set"))
		case len(set) != 1 && r.name == "exactlyOneInList": // reported for the list
			list := at.String()
			list = list[:strings.LastIndexByte(list, '[')]
			w.errs = append(w.errs, &field.Error{Type: field.ErrorTypeInvalid, Field: list, BadValue: "", Detail: "one of " + strings.Join(r.args, ", ") + " must be set"})
		case len(set) > 1 && r.name == "onlyOne":
			w.errs = append(w.errs, field.Invalid(at, "", "only one of "+strings.Join(r.args, ", ")+" may be set"))
			return false
		case len(set) != 1 && r.name == "backendPort": // reported for the backend
			err := field.Invalid(at, "", "one of "+strings.Join(r.args, ", ")+" must be set")
			if len(set) == 0 {
				err.Type = field.ErrorTypeRequired
			}
			err.Field = strings.TrimSuffix(err.Field, ".service.port")
			w.errs = append(w.errs, err)
			return false
		}
	}
	return true
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

// checker collects the errors of values, and the fields with values of unknown validity.
type checker struct {
	errs    field.ErrorList
	unknown []string
}

func (c *checker) add(errs ...*field.Error) { c.errs = append(c.errs, errs...) }

// invalid adds an error if there are messages.
func (c *checker) invalid(at *field.Path, value any, messages ...string) {
	if len(messages) > 0 {
		c.add(field.Invalid(at, value, strings.Join(messages, "; ")))
	}
}

// rule adds the errors of one rule. Lists are checked item by item.
func (c *checker) rule(r rule, at *field.Path, value any) {
	switch value := value.(type) {
	case []any:
		c.listRule(r, at, value)
	case int64:
		c.numberRule(r, at, value)
	case string:
		c.stringRule(r, at, value)
	case object:
		c.mapRule(r, at, value)
	}
}

func (c *checker) listRule(r rule, at *field.Path, items []any) {
	switch r.name {
	case "set":
		for i, item := range items {
			if slices.Contains(items[:i], item) {
				c.add(field.Duplicate(at.Index(i), item))
			}
		}
	case "keys", "distinct":
		c.uniqueKeys(r, at, items)
	case "maxItems", "itemLimit":
		limit, _ := strconv.Atoi(r.args[0])
		switch {
		case len(items) <= limit:
		case r.name == "maxItems":
			c.invalid(at, len(items), "too many items")
		default:
			c.add(field.TooMany(at, len(items), limit))
		}
	case "conditionTypes":
		for i, condition := range nested.Maps(object{"": items}, "") {
			c.invalid(at.Index(i).Child("Type"), condition["type"], validation.IsQualifiedName(nested.String(condition, "type"))...)
		}
	case "headerNames":
		for _, header := range nested.Maps(object{"": items}, "") {
			c.invalid(at, header["name"], validation.IsHTTPHeaderName(nested.String(header, "name"))...)
		}
	default:
		for i, item := range items {
			c.rule(r, at.Index(i), item)
		}
	}
}

// uniqueKeys adds an error for each item with the keys of an earlier item. Items without keys are not compared.
func (c *checker) uniqueKeys(r rule, at *field.Path, items []any) {
	seen := map[string]bool{}
	for i, item := range items {
		fields, _ := item.(object)
		var values []any
		for _, key := range r.args {
			values = append(values, fields[key])
		}
		text := fmt.Sprint(values...)
		switch {
		case isZero(fields[r.args[0]]):
		case seen[text] && r.name == "distinct":
			c.invalid(at.Index(i).Child(r.args[0]), text, "must be unique")
		case seen[text] && len(r.args) == 1:
			c.add(field.Duplicate(at.Index(i).Child(r.args[0]), text))
		case seen[text]:
			c.add(field.Duplicate(at.Index(i), text))
		}
		seen[text] = true
	}
}

func (c *checker) mapRule(r rule, at *field.Path, fields object) {
	switch r.name {
	case "labels":
		c.add(metavalidation.ValidateLabels(nested.StringMap(object{"": fields}, ""), at)...)
	case "onlyKeys":
		for key := range fields {
			if !r.pattern.MatchString(key) { // the rules of other resources are about limits and requests
				text := at.String()
				c.unknown = append(c.unknown, text[:strings.LastIndexByte(text, '.')])
				break
			}
		}
	case "configKeys":
		for key := range fields {
			c.invalid(at.Key(key), key, validation.IsConfigMapKey(key)...)
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
			c.invalid(at, n, r.text())
		}
	case "intOrPercent":
		if n < 0 {
			c.invalid(at, n, apivalidation.IsNegativeErrorMsg)
		}
	case "only":
		c.known(r, at, strconv.FormatInt(n, 10))
	}
}

// textRules are the rules of strings that return messages.
var textRules = map[string]func(string) []string{
	"label":        validation.IsDNS1123Label,
	"subdomain":    validation.IsDNS1123Subdomain,
	"portName":     validation.IsValidPortName,
	"portOrName":   validation.IsValidPortName,
	"qualified":    validation.IsQualifiedName,
	"pathSegment":  content.IsPathSegmentName,
	"configKey":    validation.IsConfigMapKey,
	"envName":      validation.IsRelaxedEnvVarName,
	"intOrPercent": validation.IsValidPercent,
	"ipOrNone":     ipOrNone,
	"optionalSubdomain": func(value string) []string {
		if value == "" {
			return nil
		}
		return validation.IsDNS1123Subdomain(value)
	},
	"withGroup":    withGroup,
	"trimmed":      trimmed,
	"relativePath": relativePath,
}

func (c *checker) stringRule(r rule, at *field.Path, value string) {
	switch {
	case r.name == "enum" || r.name == "optionalEnum" && value != "":
		if !slices.Contains(r.args, value) && len(r.args) > 0 {
			c.add(field.NotSupported(at, value, r.args))
		}
	case r.name == "format":
		c.add(formats[r.args[0]](context.TODO(), operation.Operation{}, at, &value, nil)...) //nolint:forbidigo // it computes only
	case r.name == "maxLength" || r.name == "maxBytes":
		size := len(value)
		if r.name == "maxLength" {
			size = utf8.RuneCountInString(value)
		}
		if limit, _ := strconv.Atoi(r.args[0]); size > limit {
			c.add(field.TooLong(at, value, limit))
		}
	case r.name == "like" && !r.pattern.MatchString(value):
		c.invalid(at, value, "must match "+r.pattern.String())
	case r.name == "oneLike" && !r.pattern.MatchString(value):
		c.add(field.NotSupported[string](at, value, nil))
	case r.name == "only":
		c.known(r, at, value)
	case textRules[r.name] != nil:
		c.invalid(at, value, textRules[r.name](value)...)
	}
}

// known notes a field whose value does not match the pattern of valid values.
func (c *checker) known(r rule, at *field.Path, value string) {
	if !r.pattern.MatchString(value) {
		c.unknown = append(c.unknown, at.String())
	}
}

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

// selectorOf returns a label selector that matches nothing if it is absent, and nil if it is invalid.
func selectorOf(selector object) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(labelSelector(selector))
	if err != nil {
		return nil
	}
	return parsed
}

func labelSelector(selector object) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed); err != nil {
		return nil
	}
	return &typed
}
