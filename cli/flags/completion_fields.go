package flags

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// fieldSyntax is how an argument or a flag writes paths of fields.
type fieldSyntax struct {
	begin string // of a path
	list  string // behind a list, before a field of its items
	leaf  string // behind a field without fields
	// special are characters that a name has in quotes only. Such names are left out.
	special string
}

var (
	jsonPathSyntax   = fieldSyntax{begin: ".", list: "[*].", special: "./[]{}\\\"' "}
	jqSyntax         = fieldSyntax{begin: ".", list: "[].", special: "./[]{}\\\"' -:@$"}
	assignmentSyntax = fieldSyntax{leaf: "=", special: "./[]{}\\\"' ="}
)

// completedField is a field that completes a path.
type completedField struct {
	name, typeName string
	hasFields      bool // or its items have fields
}

// pathCompletion is a path of a field.
type pathCompletion struct {
	text, typeName string
	isPartial      bool // further text follows
}

// CompleteFields completes JSONPaths of fields of the type in the first argument, one name after the other: TYPE --sort-by=PATH.
func (c *Connection) CompleteFields(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return pathCompletions(c.jsonPaths(cmd.Context(), args, prefix), "")
}

// CompleteOutput completes the formats and, for custom-columns, headers with the paths of fields.
func (c *Connection) CompleteOutput(formats []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const columns = "custom-columns="
		if !strings.HasPrefix(prefix, columns) {
			return matching(formats, prefix), noFiles | cobra.ShellCompDirectiveNoSpace
		}
		listed, column := cutLast(strings.TrimPrefix(prefix, columns), ",")
		header, path, hasHeader := strings.Cut(column, ":")
		paths := c.jsonPaths(cmd.Context(), args, path)
		if !hasHeader {
			paths = c.columns(cmd.Context(), args)
		}
		for i, one := range paths {
			name := header
			if !hasHeader {
				name = strings.TrimRight(one.text, ".[*]")
				name = strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:])
			}
			paths[i].text = name + ":" + one.text
		}
		paths = slices.DeleteFunc(paths, func(one pathCompletion) bool { return !strings.HasPrefix(one.text, column) })
		completions, directive := pathCompletions(paths, columns+listed)
		return completions, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// columns returns the paths of all fields with one or two names.
func (c *Connection) columns(ctx context.Context, args []string) (paths []pathCompletion) {
	for _, one := range c.jsonPaths(ctx, args, "") {
		if one.typeName == "object" {
			paths = append(paths, c.jsonPaths(ctx, args, one.text)...)
		} else {
			paths = append(paths, one)
		}
	}
	return paths
}

// CompleteWhere completes the path at the end of a jq expression and, behind == and !=, the values of its enum:
// TYPE --where=EXPRESSION. Behind | and ; paths do not begin at the object: nothing is completed.
func (c *Connection) CompleteWhere(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	end := regexp.MustCompile(`^(?s)(.*?(?:^|[\s(=!<>]))(\.[\w.]*(?:\[[^\]]*\][\w.]*)*)(?:(\s*[!=]=\s*)("[^"]*|\w*))?$`).FindStringSubmatch(prefix)
	if end == nil || strings.ContainsAny(end[1], "|;") || strings.Count(end[1], `"`)%2 == 1 {
		return nil, noFiles
	}
	before := end[1]
	path := end[2]
	operator := end[3]
	if operator == "" {
		return pathCompletions(c.fieldPaths(cmd.Context(), args, jqSyntax, path), before)
	}
	var texts []string
	for _, value := range c.fieldValues(cmd.Context(), typeOf(args), path) {
		if text, err := json.Marshal(value); err == nil {
			texts = append(texts, before+path+operator+string(text))
		}
	}
	return matching(texts, prefix), noFiles
}

// CompleteAssignments completes arguments TYPE NAME PATH=VALUE... and TYPE/NAME PATH=VALUE...: objects, paths of fields, and values
// of enums.
func (c *Connection) CompleteAssignments(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || len(args) == 1 && !strings.Contains(args[0], "/") {
		return c.CompleteTargets(cmd, args, prefix)
	}
	path, _, isValue := strings.Cut(prefix, "=")
	if !isValue {
		return pathCompletions(c.fieldPaths(cmd.Context(), args, assignmentSyntax, prefix), "")
	}
	return c.valueTexts(cmd.Context(), typeOf(args), path, path+"=", prefix), noFiles | cobra.ShellCompDirectiveNoSpace
}

// CompleteValues returns a function that completes the values of a field's enum, also in a list: VALUE[,VALUE].
func (c *Connection) CompleteValues(typeName, path string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		listed, _ := cutLast(prefix, ",")
		return c.valueTexts(cmd.Context(), typeName, path, listed, prefix), noFiles
	}
}

// valueTexts returns the values of a field's enum behind begin.
func (c *Connection) valueTexts(ctx context.Context, typeName, path, begin, prefix string) []cobra.Completion {
	var texts []string
	for _, value := range c.fieldValues(ctx, typeName, path) {
		texts = append(texts, begin+fmt.Sprint(value))
	}
	return matching(texts, prefix)
}

// pathCompletions returns paths behind begin, with the types as descriptions.
func pathCompletions(paths []pathCompletion, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := noFiles
	var completions []cobra.Completion
	for _, one := range paths {
		completions = append(completions, cobra.CompletionWithDesc(begin+one.text, one.typeName))
		if one.isPartial {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return completions, directive
}

// jsonPaths completes a JSONPath, which may be in braces.
func (c *Connection) jsonPaths(ctx context.Context, args []string, prefix string) []pathCompletion {
	inside, isInBraces := strings.CutPrefix(prefix, "{")
	paths := c.fieldPaths(ctx, args, jsonPathSyntax, inside)
	for i, one := range paths {
		if isInBraces && one.isPartial {
			paths[i].text = "{" + one.text
		} else if isInBraces {
			paths[i].text = "{" + one.text + "}"
		}
	}
	return paths
}

// fieldPaths completes the last name of a path.
func (c *Connection) fieldPaths(ctx context.Context, args []string, syntax fieldSyntax, prefix string) (paths []pathCompletion) {
	if len(args) == 0 {
		return nil
	}
	begin, _ := cutLast(prefix, ".")
	if begin == "" {
		begin = syntax.begin
	}
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	for _, field := range c.fields(ctx, args, begin) {
		one := pathCompletion{text: begin + field.name, typeName: field.typeName, isPartial: true}
		switch {
		case field.typeName == "object":
			one.text += "."
		case field.typeName == "array" && field.hasFields:
			one.text += syntax.list
		case field.typeName != "array" && syntax.leaf != "":
			one.text += syntax.leaf
		default:
			one.isPartial = syntax.leaf != "" // a list takes an element or a value
		}
		if isCandidate(one.text, prefix) && !strings.ContainsAny(field.name, syntax.special) {
			paths = append(paths, one)
		}
	}
	return paths
}

// fieldSteps returns the steps of a path. A dot at its end is left out, and [] is jq's [*].
func fieldSteps(text string) ([]string, error) {
	text = strings.ReplaceAll(strings.TrimSuffix(text, "."), "[]", "[*]")
	if text == "" {
		return nil, nil
	}
	return unstructured.ParsePath(text)
}

// fields returns the fields at a path, sorted by name: as the kind's schema describes them. Where no schema describes them, they
// are those of sampled objects: of a kind without a schema, below a field of any value, and in a map such as labels.
func (c *Connection) fields(ctx context.Context, args []string, path string) []completedField {
	steps, err := fieldSteps(path)
	if err != nil {
		return nil
	}
	if _, kind, err := c.KindSchema(ctx, typeOf(args)); err == nil {
		at, err := kind.At(steps...)
		if err != nil {
			return nil
		}
		if fields := describedFields(at); len(fields) > 0 || !isOpen(at) {
			return fields
		}
	}
	return c.sampledFields(ctx, args, steps)
}

// describedFields returns the fields of an object or of a list's items.
func describedFields(s *schema.Schema) (fields []completedField) {
	if items := s.Items(); items != nil {
		s = items
	}
	for name, field := range s.Fields() {
		items := field.Items()
		fields = append(fields, completedField{name, field.Type, items != nil && len(describedFields(items)) > 0})
	}
	return fields
}

// isOpen reports whether a value has fields that its schema does not name.
func isOpen(s *schema.Schema) bool {
	if items := s.Items(); items != nil {
		s = items
	}
	return s.Type == "" || s.Type == "object"
}

// sampledFields returns the fields at a path of some objects.
func (c *Connection) sampledFields(ctx context.Context, args, path []string) []completedField {
	found := map[string]completedField{}
	c.sample(ctx, args, func(obj *unstructured.Object) {
		values, _ := unstructured.GetAll[any](obj, path...) // an object without the path has no fields there
		for _, value := range values {
			for name, child := range fieldsOf(value) {
				found[name] = completedField{name, sampledType(child), len(fieldsOf(child)) > 0}
			}
		}
	})
	return slices.SortedFunc(maps.Values(found), func(a, b completedField) int { return strings.Compare(a.name, b.name) })
}

// fieldsOf returns the fields of an object or of a list's first item.
func fieldsOf(value any) map[string]any {
	if list, isList := value.([]any); isList && len(list) > 0 {
		value = list[0]
	}
	fields, _ := value.(map[string]any)
	return fields
}

// sampledType returns the type of a decoded value by its name in schemas.
func sampledType(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return ""
}

// fieldValues returns the values of a field's enum. A boolean field has two.
func (c *Connection) fieldValues(ctx context.Context, typeName, path string) []any {
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	steps, err := fieldSteps(path)
	if err != nil {
		return nil
	}
	_, kind, err := c.KindSchema(ctx, typeName)
	if err != nil {
		return nil
	}
	at, err := kind.At(steps...)
	if err != nil {
		return nil
	}
	if items := at.Items(); items != nil {
		at = items
	}
	if at.Type == "boolean" {
		return []any{true, false}
	}
	return at.Enum
}

// typeOf returns the first type of the arguments, or "".
func typeOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(args[0], ",")
	first, _, _ = strings.Cut(first, "/")
	return first
}
