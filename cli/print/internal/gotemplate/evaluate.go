package gotemplate

import (
	"fmt"
	"strings"
	"text/template/parse"
)

// pipeline evaluates a pipeline and sets its variables. The result of a command is the last argument of the next command.
func (s *state) pipeline(dot any, pipe *parse.PipeNode) (value any, err error) {
	for i, command := range pipe.Cmds {
		var final []any
		if i > 0 {
			final = []any{value}
		}
		if value, err = s.command(dot, command, final); err != nil {
			return nil, err
		}
	}
	for _, declaration := range pipe.Decl {
		if pipe.IsAssign {
			s.assign(declaration.Ident[0], value)
		} else {
			s.variables = append(s.variables, variable{declaration.Ident[0], value})
		}
	}
	return value, nil
}

// command evaluates a command: a function with arguments, or a value.
func (s *state) command(dot any, command *parse.CommandNode, final []any) (any, error) {
	first := command.Args[0]
	if identifier, ok := first.(*parse.IdentifierNode); ok {
		return s.function(dot, identifier, command.Args[1:], final)
	}
	if pipe, ok := first.(*parse.PipeNode); ok && len(command.Args) == 1 && final == nil {
		return s.pipeline(dot, pipe)
	}
	if len(command.Args) > 1 || final != nil {
		return nil, s.errorf(first, "can't give argument to non-function %s", first)
	}
	if _, ok := first.(*parse.NilNode); ok {
		return nil, s.errorf(first, "nil is not a command")
	}
	return s.value(dot, first)
}

// value evaluates an operand.
func (s *state) value(dot any, node parse.Node) (any, error) {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return nil, nil //nolint:nilnil // nil is the value
	case *parse.BoolNode:
		return node.True, nil
	case *parse.StringNode:
		return node.Text, nil
	case *parse.NumberNode:
		return number(node), nil
	case *parse.FieldNode:
		return s.fields(dot, node, node.Ident)
	case *parse.VariableNode:
		value, err := s.variable(node)
		if err != nil {
			return nil, err
		}
		return s.fields(value, node, node.Ident[1:])
	case *parse.ChainNode:
		value, err := s.value(dot, node.Node)
		if err != nil {
			return nil, err
		}
		return s.fields(value, node, node.Field)
	case *parse.PipeNode:
		return s.pipeline(dot, node)
	case *parse.IdentifierNode:
		return s.function(dot, node, nil, nil)
	}
	return nil, s.errorf(node, "can't handle %s", node)
}

// number returns the value of a constant: float64 for the syntax of a float, int64 for an integer, or else the text.
func number(node *parse.NumberNode) any {
	isHex := len(node.Text) > 2 && node.Text[0] == '0' && (node.Text[1] == 'x' || node.Text[1] == 'X') && !strings.ContainsAny(node.Text, "pP")
	switch {
	case node.IsFloat && !isHex && node.Text[0] != '\'' && strings.ContainsAny(node.Text, ".eEpP"):
		return node.Float64
	case node.IsInt:
		return node.Int64
	}
	return node.Text
}

func (s *state) variable(node *parse.VariableNode) (any, error) {
	for i := len(s.variables) - 1; i >= 0; i-- {
		if s.variables[i].name == node.Ident[0] {
			return s.variables[i].value, nil
		}
	}
	return nil, s.errorf(node, "undefined variable: %s", node.Ident[0])
}

// fields selects a path of fields.
func (s *state) fields(value any, node parse.Node, names []string) (any, error) {
	for _, name := range names {
		switch object := value.(type) {
		case map[string]any:
			field, ok := object[name]
			if !ok {
				if s.template.errorOnMissing {
					return nil, s.errorf(node, "map has no entry for key %q", name)
				}
				field = noValue{}
			}
			value = field
		case noValue:
			if s.template.errorOnMissing {
				return nil, s.errorf(node, "nil data; no entry for key %q", name)
			}
			value = noValue{}
		case nil:
			return nil, s.errorf(node, "nil pointer evaluating interface {}.%s", name)
		default:
			return nil, s.errorf(node, "can't evaluate field %s in type interface {}", name)
		}
	}
	return value, nil
}

func typeName(value any) string {
	switch value.(type) {
	case []any:
		return "[]interface {}"
	case map[string]any:
		return "map[string]interface {}"
	}
	return fmt.Sprintf("%T", value)
}

// function calls a function. The functions and and or evaluate their arguments only until the result is known.
func (s *state) function(dot any, node *parse.IdentifierNode, args []parse.Node, final []any) (any, error) {
	if node.Ident == "and" || node.Ident == "or" {
		return s.logic(dot, node, args, final)
	}
	function, ok := s.template.functions[node.Ident]
	if !ok {
		return nil, s.errorf(node, "%q is not a defined function", node.Ident)
	}
	values := make([]any, 0, len(args)+1)
	for _, arg := range args {
		value, err := s.value(dot, arg)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	result, err := function(append(values, final...))
	if err != nil {
		return nil, s.errorf(node, "error calling %s: %v", node.Ident, err)
	}
	return result, nil
}

func (s *state) logic(dot any, node *parse.IdentifierNode, args []parse.Node, final []any) (any, error) {
	if len(args)+len(final) == 0 {
		return nil, s.errorf(node, "wrong number of args for %s: want at least 1 got 0", node.Ident)
	}
	var value any
	for _, arg := range args {
		var err error
		if value, err = s.value(dot, arg); err != nil {
			return nil, err
		}
		if isTrue(value) == (node.Ident == "or") {
			return value, nil
		}
	}
	if len(final) > 0 {
		value = final[0]
	}
	return value, nil
}
