package builtin

import (
	"context"
	_ "embed" // confirmed.txt
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// confirmedText has the rules of stage alpha that have the same effect as the code of a server of RulesVersion: TYPE FIELD RULE. A
// test of package probe writes it.
//
//go:embed confirmed.txt
var confirmedText string

var confirmed = sync.OnceValue(func() map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(confirmedText) {
		lines[strings.TrimSpace(line)] = true
	}
	return lines
})

// declaredRule is a rule in the comment of a Go type or field, "+k8s:alpha(since: "1.36")=+k8s:maxItems=8": its stage is alpha, beta
// or standard, its text "maxItems=8".
type declaredRule struct {
	stage string
	text  string
}

// declare adds a rule "STAGE TEXT" to the last field, or to a type without fields.
func (t *goType) declare(line string) {
	stage, text, _ := strings.Cut(line, " ")
	rules := &t.declared
	if last := len(t.fields) - 1; last >= 0 {
		rules = &t.fields[last].declared
	}
	*rules = append(*rules, declaredRule{stage, text})
}

// DeclaredRule is a rule that a Go type declares for a field, of a form that this package applies. Cause is the type of its error.
type DeclaredRule struct {
	Text  string
	Stage string
	Cause field.ErrorType

	rule rule
}

// Line returns the line of the rule in confirmed.txt. The field of a rule of a struct as a whole is "*".
func (r DeclaredRule) Line(typ, name string) string { return typ + " " + name + " " + r.Text }

// IsInForce reports whether a server applies the rule with a line. It rejects for standard and beta rules. It runs an alpha rule in
// addition to code that decides.
func (r DeclaredRule) IsInForce(line string) bool { return r.Stage != "alpha" || confirmed()[line] }

type formatFunc = func(context.Context, operation.Operation, *field.Path, *string, *string) field.ErrorList

// formats are the formats of strings by the name that types declare.
var formats = map[string]formatFunc{
	"k8s-extended-resource-name":        validate.ExtendedResourceName[string],
	"k8s-label-key":                     validate.LabelKey[string],
	"k8s-label-value":                   validate.LabelValue[string],
	"k8s-long-name":                     validate.LongName[string],
	"k8s-long-name-caseless":            validate.LongNameCaseless[string], //nolint:staticcheck // types declare it
	"k8s-path-segment-name":             validate.PathSegmentName[string],
	"k8s-prefixed-label-key":            validate.PrefixedLabelKey[string],
	"k8s-resource-fully-qualified-name": validate.ResourceFullyQualifiedName[string],
	"k8s-resource-pool-name":            validate.ResourcePoolName[string],
	"k8s-short-name":                    validate.ShortName[string],
	"k8s-uuid":                          validate.UUID[string],
}

// DeclaredRules returns the rules of a field of a Go type. Rules of other forms are left out: conditions of feature gates,
// discriminated unions and code of the server.
func DeclaredRules(typ, name string) (all []DeclaredRule) {
	t := goTypes().types[typ]
	if t == nil {
		return nil
	}
	if name == wholeStruct {
		return t.union()
	}
	known := t.byName[name]
	if known == nil {
		return nil
	}
	declared := known.declared
	if named := goTypes().types[goTypes().elementOf(known.typ)]; named != nil {
		declared = slices.Concat(declared, named.declared)
	}
	for _, d := range declared {
		key, isKey := strings.CutPrefix(d.text, "listMapKey=")
		if last := len(all) - 1; isKey && last >= 0 && all[last].rule.name == "keys" {
			all[last].rule.args = append(all[last].rule.args, key)
			all[last].Text += "|" + key
			continue
		}
		switch r, ok := d.translate(strings.HasPrefix(known.typ, "*")); {
		case ok && r.rule.name == "immutable": // also of a field that lacks its required value
			all = slices.Insert(all, 0, r)
		case ok:
			all = append(all, r)
		}
	}
	return all
}

// translate returns a rule in the form of rules.txt.
func (d declaredRule) translate(isPointer bool) (DeclaredRule, bool) {
	name, arg, _ := strings.Cut(d.text, "=")
	arg = strings.Trim(arg, `"`)
	out := func(cause field.ErrorType, name string, args ...string) (DeclaredRule, bool) {
		return DeclaredRule{Text: d.text, Stage: d.stage, Cause: cause, rule: rule{name: name, args: args}}, true
	}
	switch {
	case name == "required" && isPointer:
		return out(field.ErrorTypeRequired, "present")
	case name == "required":
		return out(field.ErrorTypeRequired, "required")
	case name == "immutable":
		return out(field.ErrorTypeInvalid, "immutable")
	case name == "maxItems":
		return out(field.ErrorTypeTooMany, "itemLimit", arg)
	case name == "maxLength" || name == "maxBytes":
		return out(field.ErrorTypeTooLong, name, arg)
	case name == "minimum" || name == "maximum":
		return out(field.ErrorTypeInvalid, name[:3], arg)
	case name == "enum":
		return out(field.ErrorTypeNotSupported, "enum")
	case name == "format" && formats[arg] != nil:
		return out(field.ErrorTypeInvalid, "format", arg)
	case (name == "listType" || name == "unique") && arg == "set":
		return out(field.ErrorTypeDuplicate, "set")
	case name == "listMapKey":
		return out(field.ErrorTypeDuplicate, "keys", arg)
	}
	return DeclaredRule{}, false
}

// union returns the rule of a struct with exactly one of some fields.
func (t *goType) union() []DeclaredRule {
	all := DeclaredRule{Cause: field.ErrorTypeInvalid, rule: rule{name: "exactlyOne"}}
	for _, f := range t.fields {
		for _, d := range f.declared {
			if d.text == "unionMember" {
				all.Stage = d.stage
				all.rule.args = append(all.rule.args, f.name)
			}
		}
	}
	if len(all.rule.args) == 0 {
		return nil
	}
	all.Text = "unionMember=" + strings.Join(all.rule.args, "|")
	return []DeclaredRule{all}
}

// declaredInForce has the declared rules that a server applies.
var declaredInForce = sync.OnceValue(func() ruleTable {
	table := ruleTable{}
	for typ, t := range goTypes().types {
		add := func(name string) {
			rules := &fieldRules{}
			if whole := complete()[typ][wholeStruct]; name == wholeStruct && whole != nil && whole.rules[0].name == "onlyOne" {
				rules.rules = slices.Clone(whole.rules)
			}
			for _, r := range DeclaredRules(typ, name) {
				if r.IsInForce(r.Line(typ, name)) {
					rules.rules = append(rules.rules, r.rule)
				}
			}
			if len(rules.rules) == 0 {
				return
			}
			if table[typ] == nil {
				table[typ] = map[string]*fieldRules{}
			}
			table[typ][name] = rules
		}
		add(wholeStruct)
		for i := range t.fields {
			add(t.fields[i].name)
		}
	}
	return table
})

// checkDeclared applies the rules that the Go types of an object declare, to changed fields as a server does. It returns errors that
// known has not. The fields remain incomplete: a type may declare a part of its rules.
func checkDeclared(resource schema.GroupResource, subresource string, obj, old object, known field.ErrorList) (errs field.ErrorList) {
	w := newWalk(resource, subresource, old)
	w.rules = declaredInForce()
	w.isDeclared = true
	if typ, ok := w.types.kinds[(&unstructuredv1.Unstructured{Object: obj}).GroupVersionKind()]; ok {
		w.structure(typ, place{}, obj, old)
	}
	for _, err := range w.errs {
		isSame := func(other *field.Error) bool { return other.Type == err.Type && other.Field == err.Field }
		if !slices.ContainsFunc(known, isSame) {
			errs = append(errs, err)
		}
	}
	return errs
}
