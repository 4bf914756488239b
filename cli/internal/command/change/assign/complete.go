package assign

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// Complete completes targets, and behind them the paths of fields and, behind '=', the values that a field's enum allows.
func Complete(s *command.State) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 || len(args) == 1 && !strings.Contains(args[0], "/") {
			return s.Connection.CompleteTargets(cmd, args, prefix)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
		defer cancel()
		typeName, _, _ := strings.Cut(args[0], "/")
		completions, err := completeAssignment(ctx, s, typeName, prefix)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
		return completions, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeAssignment completes PATH=VALUE for a type.
func completeAssignment(ctx context.Context, s *command.State, typeName, prefix string) ([]cobra.Completion, error) {
	_, kind, err := s.KindSchema(ctx, typeName)
	if err != nil {
		return nil, err
	}
	text, _, isValue := strings.Cut(prefix, "=")
	if !isValue {
		text = prefix[:strings.LastIndexByte(prefix, '.')+1]
	}
	path, err := unstructured.ParsePath(strings.TrimSuffix(text, "."))
	if err != nil {
		return nil, err
	}
	field, err := kind.At(path...)
	if err != nil {
		return nil, err
	}
	if isValue {
		return fieldValues(field, text+"=", prefix), nil
	}
	return fieldPaths(field, text, prefix), nil
}

// fieldValues returns the values of a field's enum, and those of a boolean.
func fieldValues(field *schema.Schema, begin, prefix string) (completions []cobra.Completion) {
	values := field.Enum
	if field.Type == "boolean" {
		values = []any{true, false}
	}
	for _, value := range values {
		if text := begin + fmt.Sprint(value); strings.HasPrefix(text, prefix) && printable.Line(text) == text {
			completions = append(completions, text)
		}
	}
	return completions
}

// fieldPaths returns the paths of the fields of an object or of a list's items. The path of a scalar ends in '='.
func fieldPaths(field *schema.Schema, begin, prefix string) (completions []cobra.Completion) {
	if items := field.Items(); items != nil {
		field = items
	}
	for name, child := range field.Fields() {
		text := begin + name
		if child.Type == "object" {
			text += "."
		} else if child.Type != "array" {
			text += "="
		}
		if strings.HasPrefix(text, prefix) && printable.Line(text) == text {
			completions = append(completions, cobra.CompletionWithDesc(text, child.Type))
		}
	}
	return completions
}
