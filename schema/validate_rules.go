package schema

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/jsonread"
)

// RuleCompiler compiles the CEL rules of schemas. Rules of package apitest/cel implements it. It is safe for concurrent use.
type RuleCompiler interface {
	// Compile returns the rules of an openAPIV3Schema.
	Compile(openAPIV3 map[string]any) (Rules, error)
}

// Rules evaluates the CEL rules of a schema. It is safe for concurrent use.
type Rules interface {
	// Validate returns the rules broken by obj. old is nil for a creation.
	Validate(ctx context.Context, obj, old map[string]any) field.ErrorList
}

func (k *kindInfo) compile(compiler RuleCompiler) (Rules, error) {
	k.compiling.Do(func() {
		r := jsonread.Borrow(k.raw)
		defer r.Release()
		value, err := r.Value()
		if err != nil {
			k.err = err
			return
		}
		openAPIV3, _ := structural(value, true).(map[string]any)
		k.compiled, k.err = compiler.Compile(openAPIV3)
	})
	return k.compiled, k.err
}

// structural returns a published schema as its definition has it: without references to ObjectMeta.
func structural(value any, isRoot bool) any {
	switch value := value.(type) {
	case map[string]any:
		if all, isList := value["allOf"].([]any); value["$ref"] != nil || isList && len(all) == 1 && isReference(all[0]) {
			return map[string]any{"type": "object"}
		}
		for name, child := range value {
			value[name] = structural(child, false)
		}
		if isRoot {
			delete(value, "x-kubernetes-group-version-kind")
		}
	case []any:
		for i, child := range value {
			value[i] = structural(child, false)
		}
	}
	return value
}

func isReference(value any) bool {
	schema, _ := value.(map[string]any)
	return schema["$ref"] != nil
}

// blocking are the keywords of problems that keep the server from evaluating rules.
func isBlocking(keyword string) bool {
	switch keyword {
	case "type", "required", "enum", "maxLength", "maxItems", "maxProperties", "unknown":
		return true
	}
	return false
}

// rules evaluates the rules that apply to an object, or notes why not.
func (v *validator) rules(ctx context.Context, obj map[string]any, compiler RuleCompiler) {
	if v.ruleCount == 0 {
		return
	}
	what := "the rule in x-kubernetes-validations that applies"
	if v.ruleCount > 1 {
		what = fmt.Sprintf("%d rules of x-kubernetes-validations that apply", v.ruleCount)
	}
	for _, problem := range v.problems {
		if !problem.IsWarning && isBlocking(problem.Keyword) {
			v.note(what + ": the server evaluates them once the other problems are fixed")
			return
		}
	}
	if compiler == nil || v.root.kind == nil || v.root.kind.raw == nil {
		v.note(what + ": without an evaluator")
		return
	}
	compiled, err := v.root.kind.compile(compiler)
	if err != nil {
		v.note(what + ": " + err.Error())
		return
	}
	for _, broken := range compiled.Validate(ctx, obj, nil) {
		if ctx.Err() != nil {
			v.note(what + ": " + context.Cause(ctx).Error())
			return
		}
		v.addAt(parseField(broken.Field), Problem{Keyword: "x-kubernetes-validations", Message: ruleMessage(broken)})
	}
}

// ruleMessage returns an error without its field and value.
func ruleMessage(err *field.Error) string {
	if err.Detail != "" {
		return err.Detail
	}
	return err.ErrorBody()
}

// fieldSteps matches the steps of a path in an error of the server: spec, [0], [key].
var fieldSteps = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`) })

// parseField returns the path of an error of the server.
func parseField(text string) []any {
	var path []any
	if text == "<nil>" {
		return nil
	}
	for _, step := range fieldSteps().FindAllString(text, -1) {
		inside, isBracket := strings.CutPrefix(step, "[")
		inside = strings.TrimSuffix(inside, "]")
		if i, err := strconv.Atoi(inside); isBracket && err == nil {
			path = append(path, i)
		} else {
			path = append(path, inside)
		}
	}
	return path
}
