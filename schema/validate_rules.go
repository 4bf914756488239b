package schema

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/sanitize"
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
			switch fields, isMap := child.(map[string]any); {
			case name == "default", name == "enum", name == "example": // values, whose fields may have the names of keywords
			case name == "properties" && isMap:
				for field, s := range fields {
					fields[field] = structural(s, false)
				}
			default:
				value[name] = structural(child, false)
			}
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

// isBlocking reports whether the server evaluates no rules after a problem.
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

// kindInfo has the facts about a kind for its schema.
type kindInfo struct {
	raw           []byte // JSON of the schema
	isCustom      bool   // the kind of a definition
	ignoresStatus bool   // the server removes the status of new objects: it is a subresource
	deprecation   string // of the version, or empty
	replicas      []any  // path of the number of replicas for the scale subresource, known of definitions only

	compiling sync.Once // of the rules
	compiled  Rules
	err       error
}

// setKind sets the kind of a component.
func (s *Schema) setKind(d *Document, raw []byte) {
	if len(s.GroupVersionKinds) == 0 {
		return
	}
	s.kind = &kindInfo{
		raw:           raw,
		isCustom:      s.Name == definedName(s.GroupVersionKinds[0]),
		ignoresStatus: slices.ContainsFunc(s.GroupVersionKinds, func(gvk schema.GroupVersionKind) bool { return d.statuses[gvk] }),
	}
}

// definedName returns the name of a defined kind's schema in documents: com.example.v1.Foo. Schemas of Go types are named for the
// type's package.
func definedName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

// addPaths reads the paths of a document, for the kinds with a status subresource.
func (d *Document) addPaths(r *jsonread.Reader) error {
	if c, err := r.Peek(); err != nil || c != '{' {
		_, _, err = r.Skip()
		return err
	}
	return eachMember(r, "paths", func(path string) error {
		if !strings.HasSuffix(path, "/status") {
			_, _, err := r.Skip()
			return err
		}
		return eachMember(r, path, func(method string) error {
			if method != "put" {
				_, _, err := r.Skip()
				return err
			}
			return eachMember(r, method, d.addStatus(r))
		})
	})
}

// addStatus returns a function that reads a member of the operation on a status subresource.
func (d *Document) addStatus(r *jsonread.Reader) func(name string) error {
	return func(name string) error {
		if name != "x-kubernetes-group-version-kind" {
			_, _, err := r.Skip()
			return err
		}
		value, err := r.Value()
		for _, gvk := range groupVersionKinds([]any{value}) {
			d.statuses[gvk] = true
		}
		return err
	}
}

// definedKind returns the kind of a definition's version.
func definedKind(gvk schema.GroupVersionKind, version map[string]any, raw []byte) *kindInfo {
	subresources, _ := version["subresources"].(map[string]any)
	scale, _ := subresources["scale"].(map[string]any)
	return &kindInfo{
		raw: raw, isCustom: true, ignoresStatus: subresources["status"] != nil, deprecation: definedDeprecation(gvk, version),
		replicas: parseField(text(scale["specReplicasPath"])),
	}
}

// scale validates the number of replicas.
func (v *validator) scale(obj map[string]any, path []any) {
	var value any = obj
	for _, step := range path {
		name, _ := step.(string)
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	if n, isNumber := toNumber(value); isNumber && (n.float < 0 || n.float > math.MaxInt32) {
		v.addAt(path, Problem{Keyword: "scale", Message: fmt.Sprintf("is %v, the scale subresource says at least 0 and at most %d", value, math.MaxInt32)})
	}
}

// versionDeprecation returns the text of a definition or a description about a deprecated version, or "". s is the schema of a kind.
func (s *Schema) versionDeprecation() string {
	if s.kind != nil && s.kind.deprecation != "" {
		return s.kind.deprecation
	}
	return s.deprecation
}

// definedDeprecation returns the text of a definition about a deprecated version, or "".
func definedDeprecation(gvk schema.GroupVersionKind, version map[string]any) string {
	if version["deprecated"] != true {
		return ""
	}
	if warning := text(version["deprecationWarning"]); warning != "" {
		return sanitize.Text(warning, maxError)
	}
	return fmt.Sprintf("%s is deprecated", kindText(gvk))
}
