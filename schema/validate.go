package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// ValidateOptions are the options of [Schema.Validate].
type ValidateOptions struct {
	// Rules compiles the rules of x-kubernetes-validations, such as Rules of package apitest/cel. The first call with Rules compiles
	// the rules of a schema. Without Rules no rule is checked.
	Rules RuleCompiler
}

// Result is the result of [Schema.Validate].
type Result struct {
	// Problems are sorted by path. There are at most 1,000.
	Problems []Problem
	// NotChecked names the checks that were left out, sorted: rules without a RuleCompiler, unresolved references, unknown formats,
	// patterns outside of Go's syntax, and the validation in Go code of built-in kinds.
	NotChecked []string
}

// Problem is a violation of a schema, or a warning.
type Problem struct {
	// Path is the path of the value: names of fields (string) and indexes of lists (int).
	Path []any
	// Keyword is the keyword of the schema, such as type, required or x-kubernetes-list-type. It is "unknown" for an unknown field,
	// "metadata" for a rule of ObjectMeta, and "deprecated".
	Keyword string
	// IsWarning is true if the server accepts the object.
	IsWarning bool
	// Message describes the value and quotes the schema.
	Message string
	// Hint proposes a change, or is empty.
	Hint string
}

// maxProblems bounds the problems of an object.
const maxProblems = 1000

// Err returns an error with all problems but warnings, or nil.
func (r *Result) Err() error {
	var errs []error
	for _, problem := range r.Problems {
		if !problem.IsWarning {
			errs = append(errs, errors.New(problem.String()))
		}
	}
	return errors.Join(errs...)
}

// String returns the problem as a line: path: message (hint).
func (p Problem) String() string {
	text := p.Message
	if field := p.Field(); field != "" {
		text = field + ": " + text
	}
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}

// Field returns the path as text: spec.containers[0].image, metadata.labels["example.com/a"].
func (p Problem) Field() string {
	var b strings.Builder
	for _, step := range p.Path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			switch {
			case step == "" || strings.ContainsFunc(step, needsQuotes):
				b.WriteString("[" + strconv.Quote(step) + "]")
			case b.Len() > 0:
				b.WriteString("." + step)
			default:
				b.WriteString(step)
			}
		}
	}
	return b.String()
}

func needsQuotes(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' && c != '$'
}

const usualDepth = 16 // of objects

// Validate validates a new object by its kind's schema as an API server does with strict field validation. obj stays as it is: the
// server's defaults are taken into account, but not set. ctx ends the evaluation of rules.
//
// Custom resources are validated completely, with the rules of [ValidateOptions].Rules. The remaining kinds are decoded into Go
// types and validated by Go code: their schemas have only fields, types and a part of the required fields and enums.
// Result.NotChecked says so. Their required fields are errors if a server is known to reject an object without them, otherwise
// warnings: the server has defaults for some of them.
//
// Unresolved references and rules that cannot be compiled are no errors of the object, and are named in Result.NotChecked. The
// work is bounded: a schema with references in circles, or of excessive size, ends in Result.NotChecked, too.
//
// Problems quote values, except for those of data and stringData of a Secret.
func (s *Schema) Validate(ctx context.Context, obj *unstructured.Object, opts *ValidateOptions) *Result {
	if opts == nil {
		opts = &ValidateOptions{}
	}
	v := &validator{isTyped: s.kind == nil || !s.kind.isCustom, root: s, path: make([]segment, 0, usualDepth)}
	v.isSecret = obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret"
	completed := obj.Object
	if v.isTyped {
		v.note("the validation of the API server in Go: the schema has only fields, types and a part of the required fields and enums (a dry run has all)")
		v.value(completed, s)
	} else {
		completed = v.custom(completed, s)
	}
	v.metadata(obj.Object, s)
	if text := s.versionDeprecation(); text != "" {
		v.warn("deprecated", text, "")
	}
	v.rules(ctx, completed, opts.Rules)
	return v.result()
}

// custom validates an object of a definition and returns it with the server's defaults.
func (v *validator) custom(obj map[string]any, s *Schema) map[string]any {
	root := *s
	root.EmbeddedResource = false // the root's metadata is validated by v.metadata
	completed, _ := v.complete(obj, s, completion{isResource: true}).(map[string]any)
	if status, found := completed["status"]; found && s.kind.ignoresStatus {
		v.ignoredStatus(status, s.Field("status"))
		completed = without(completed, "status")
	}
	v.value(completed, &root)
	if len(s.kind.replicas) > 0 {
		v.scale(completed, s.kind.replicas)
	}
	return completed
}

// ignoredStatus validates a status that the server removes from a new object: all problems are warnings.
func (v *validator) ignoredStatus(status any, s *Schema) {
	if s == nil {
		return
	}
	v.push("status")
	first := len(v.problems)
	v.value(status, s)
	for i := range v.problems[first:] {
		v.problems[first+i].IsWarning = true
		v.problems[first+i].Hint = "the server ignores the status of a new object"
	}
	v.pop()
}

func (v *validator) result() *Result {
	slices.SortStableFunc(v.problems, func(a, b Problem) int {
		return cmp.Or(comparePaths(a.Path, b.Path), strings.Compare(a.Keyword, b.Keyword), strings.Compare(a.Message, b.Message))
	})
	slices.Sort(v.notes)
	return &Result{Problems: v.problems, NotChecked: v.notes}
}

func comparePaths(a, b []any) int {
	return slices.CompareFunc(a, b, func(a, b any) int {
		i, isIndex := a.(int)
		j, isOtherIndex := b.(int)
		if isIndex && isOtherIndex {
			return cmp.Compare(i, j)
		}
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}
