package gotemplate

import (
	"strings"
	"text/template/parse"
)

// pipeline returns the value of a pipeline, and declares or sets its variables. A nil pipeline has no value.
func (e *execution) pipeline(dot value, pipe *parse.PipeNode) (result value, err error) {
	if pipe == nil {
		return value{}, nil
	}
	e.node = pipe
	var last *value
	for _, command := range pipe.Cmds {
		if result, err = e.command(dot, command, last); err != nil {
			return value{}, err
		}
		result = result.unbox()
		last = &result
	}
	for _, declared := range pipe.Decl {
		if !pipe.IsAssign {
			e.variables = append(e.variables, variable{declared.Ident[0], result})
		} else if err := e.set(declared.Ident[0], result); err != nil {
			return value{}, err
		}
	}
	return result, nil
}

// command returns the value of a command. last is the value of the command before it in the pipeline, or nil.
func (e *execution) command(dot value, command *parse.CommandNode, last *value) (value, error) {
	first := command.Args[0]
	switch n := first.(type) {
	case *parse.FieldNode:
		e.node = n
		return e.fields(dot, n.Ident, command.Args, last)
	case *parse.ChainNode:
		return e.chain(dot, n, command.Args, last)
	case *parse.IdentifierNode:
		e.node = n
		return e.call(dot, n.Ident, command, command.Args, last)
	case *parse.PipeNode:
		if err := e.checkNoArguments(command.Args, last); err != nil {
			return value{}, err
		}
		return e.pipeline(dot, n)
	case *parse.VariableNode:
		return e.variableFields(n, command.Args, last)
	}
	e.node = first
	if err := e.checkNoArguments(command.Args, last); err != nil {
		return value{}, err
	}
	switch n := first.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return value{}, e.errorf("nil is not a command")
	case *parse.BoolNode, *parse.NumberNode, *parse.StringNode:
		return e.literal(n)
	default:
		return value{}, e.errorf("can't evaluate command %q", first)
	}
}

func (e *execution) checkNoArguments(args []parse.Node, last *value) error {
	if len(args) > 1 || last != nil {
		return e.errorf("can't give argument to non-function %s", args[0])
	}
	return nil
}

// literal returns the value of a constant.
func (e *execution) literal(node parse.Node) (value, error) {
	e.node = node
	switch n := node.(type) {
	case *parse.BoolNode:
		return concrete(n.True), nil
	case *parse.StringNode:
		return concrete(n.Text), nil
	case *parse.NumberNode:
		return e.number(n)
	default:
		return value{}, e.errorf("can't handle assignment of %s to empty interface argument", node)
	}
}

// number returns the value of a number by the rules of Go's constants without a type.
func (e *execution) number(n *parse.NumberNode) (value, error) {
	isHex := len(n.Text) > 2 && n.Text[0] == '0' && (n.Text[1] == 'x' || n.Text[1] == 'X') && !strings.ContainsAny(n.Text, "pP")
	isRune := strings.HasPrefix(n.Text, "'")
	switch {
	case n.IsComplex:
		return concrete(n.Complex128), nil
	case n.IsFloat && !isHex && !isRune && strings.ContainsAny(n.Text, ".eEpP"):
		return concrete(n.Float64), nil
	case n.IsInt && int64(int(n.Int64)) == n.Int64:
		return concrete(int(n.Int64)), nil
	default:
		return value{}, e.errorf("%s overflows int", n.Text)
	}
}

// chain returns the value of fields behind an expression in parentheses.
func (e *execution) chain(dot value, n *parse.ChainNode, args []parse.Node, last *value) (value, error) {
	e.node = n
	if n.Node.Type() == parse.NodeNil {
		return value{}, e.errorf("indirection through explicit nil in %s", n)
	}
	receiver, err := e.argument(dot, n.Node)
	if err != nil {
		return value{}, err
	}
	return e.fields(receiver, n.Field, args, last)
}

// variableFields returns the value of a variable, or of fields of it.
func (e *execution) variableFields(n *parse.VariableNode, args []parse.Node, last *value) (value, error) {
	e.node = n
	found, err := e.variable(n.Ident[0])
	switch {
	case err != nil:
		return value{}, err
	case len(n.Ident) == 1:
		return found.value, e.checkNoArguments(args, last)
	default:
		return e.fields(found.value, n.Ident[1:], args, last)
	}
}

// fields returns the value of nested fields. args and last are for the last field, which takes none.
func (e *execution) fields(receiver value, names []string, args []parse.Node, last *value) (value, error) {
	var err error
	for i, name := range names {
		hasArguments := i == len(names)-1 && (len(args) > 1 || last != nil)
		if receiver, err = e.field(receiver, name, hasArguments); err != nil {
			return value{}, err
		}
	}
	return receiver, nil
}

func (e *execution) field(receiver value, name string, hasArguments bool) (value, error) {
	if !receiver.isValid {
		if e.template.missingError {
			return value{}, e.errorf("nil data; no entry for key %q", name)
		}
		return value{}, nil
	}
	object, isObject := receiver.data.(map[string]any)
	switch {
	case receiver.data == nil:
		return value{}, e.errorf("nil pointer evaluating %s.%s", receiver.typeName(), name)
	case !isObject:
		return value{}, e.errorf("can't evaluate field %s in type %s", name, receiver.typeName())
	case hasArguments:
		return value{}, e.errorf("%s is not a method but has arguments", name)
	}
	found, exists := object[name]
	switch {
	case exists:
		return boxed(found), nil
	case e.template.missingError:
		return value{}, e.errorf("map has no entry for key %q", name)
	default:
		return value{}, nil
	}
}

// argument returns the value of an argument of a function that takes any value.
func (e *execution) argument(dot value, node parse.Node) (value, error) {
	e.node = node
	switch n := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return value{}, nil
	case *parse.FieldNode:
		return e.fields(dot, n.Ident, nil, nil)
	case *parse.VariableNode:
		return e.variableFields(n, nil, nil)
	case *parse.PipeNode:
		return e.pipeline(dot, n)
	case *parse.IdentifierNode:
		return e.call(dot, n.Ident, n, nil, nil)
	case *parse.ChainNode:
		return e.chain(dot, n, nil, nil)
	default:
		return e.literal(node)
	}
}

// text returns the value of an argument of a function that takes a string.
func (e *execution) text(dot value, node parse.Node) (value, error) {
	e.node = node
	switch n := node.(type) {
	case *parse.StringNode:
		return concrete(n.Text), nil
	case *parse.NilNode:
		return value{}, e.errorf("cannot assign nil to string")
	case *parse.BoolNode, *parse.NumberNode:
		return value{}, e.errorf("expected string; found %s", node)
	}
	argument, err := e.argument(dot, node)
	if err != nil {
		return value{}, err
	}
	return argument, e.checkText(argument)
}

func (e *execution) checkText(v value) error {
	switch v.data.(type) {
	case string:
		return nil
	case nil:
		if !v.isValid {
			return e.errorf("invalid value; expected string")
		}
		return e.errorf("wrong type for value; expected string; got %s", v.typeName())
	default:
		return e.errorf("wrong type for value; expected string; got %T", v.data)
	}
}
