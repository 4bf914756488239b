// Package gotemplate executes Go templates over decoded JSON: maps, lists, strings, numbers, booleans and nil.
//
// The parser is text/template/parse. For such data the results equal the results of text/template; the tests compare both.
// text/template itself is not used, because it calls methods by name: in a program with it, the linker keeps the exported methods
// of all types, 3 MB of anyctl's 19. Decoded JSON has no methods to call.
package gotemplate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/template/parse"
)

// maxDepth limits recursive templates, as in text/template.
const maxDepth = 100_000

// Template is a parsed template.
type Template struct {
	trees map[string]*parse.Tree
	root  string
	// errorOnMissing makes a missing map key an error. Otherwise its value is <no value>.
	errorOnMissing bool
	functions      map[string]Function
}

// Function is a function of templates. Its arguments are evaluated values.
type Function func(args []any) (any, error)

// logic is a placeholder for the functions and and or, because the parser needs the names of all functions.
func logic() {}

// Parse parses a template. functions are added to the functions of text/template.
func Parse(text string, functions map[string]Function, errorOnMissing bool) (*Template, error) {
	all := builtins()
	maps.Copy(all, functions)
	names := map[string]any{"and": logic, "or": logic}
	for name := range all {
		names[name] = all[name]
	}
	const root = "output"
	trees, err := parse.Parse(root, text, "{{", "}}", names)
	if err != nil {
		return nil, err
	}
	return &Template{trees: trees, root: root, errorOnMissing: errorOnMissing, functions: all}, nil
}

// Execute writes the template's output for data. After an error, a part may be written.
func (t *Template) Execute(w io.Writer, data any) error {
	tree := t.trees[t.root]
	if tree == nil || tree.Root == nil {
		return fmt.Errorf("template: %s: %q is an incomplete or empty template", t.root, t.root)
	}
	s := &state{template: t, w: w, variables: []variable{{"$", data}}}
	return s.walkList(data, tree.Root)
}

type variable struct {
	name  string
	value any
}

// noValue is the value of a missing field. It is printed as <no value> and is false.
type noValue struct{}

// errBreak ends a loop, and errContinue an iteration.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// state is the state of an execution.
type state struct {
	template  *Template
	w         io.Writer
	variables []variable
	depth     int
}

func (s *state) errorf(node parse.Node, format string, args ...any) error {
	location, text := s.template.trees[s.template.root].ErrorContext(node)
	return fmt.Errorf("template: %s: executing %q at <%s>: %s", location, s.template.root, text, fmt.Sprintf(format, args...))
}

func (s *state) walkList(dot any, list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := s.walk(dot, node); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) walk(dot any, node parse.Node) error {
	switch node := node.(type) {
	case *parse.TextNode:
		_, err := s.w.Write(node.Text)
		return err
	case *parse.ActionNode:
		value, err := s.pipeline(dot, node.Pipe)
		if err != nil || len(node.Pipe.Decl) > 0 {
			return err
		}
		_, err = io.WriteString(s.w, toText(value))
		return err
	case *parse.IfNode:
		return s.branch(dot, &node.BranchNode, false)
	case *parse.WithNode:
		return s.branch(dot, &node.BranchNode, true)
	case *parse.RangeNode:
		return s.loop(dot, node)
	case *parse.TemplateNode:
		return s.call(dot, node)
	case *parse.ListNode:
		return s.walkList(dot, node)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	case *parse.CommentNode:
		return nil
	}
	return s.errorf(node, "unknown node: %s", node)
}

func (s *state) branch(dot any, node *parse.BranchNode, isWith bool) error {
	mark := len(s.variables)
	defer func() { s.variables = s.variables[:mark] }()
	value, err := s.pipeline(dot, node.Pipe)
	if err != nil {
		return err
	}
	if !isTrue(value) {
		return s.walkList(dot, node.ElseList)
	}
	if isWith {
		dot = value
	}
	return s.walkList(dot, node.List)
}

func (s *state) loop(dot any, node *parse.RangeNode) error {
	mark := len(s.variables)
	defer func() { s.variables = s.variables[:mark] }()
	value, err := s.pipeline(dot, node.Pipe)
	if err != nil {
		return err
	}
	body := len(s.variables)
	pass := func(key, element any) (done bool, err error) {
		s.declareLoop(node.Pipe, key, element)
		defer func() { s.variables = s.variables[:body] }()
		switch err := s.walkList(element, node.List); {
		case errors.Is(err, errBreak):
			return true, nil
		case errors.Is(err, errContinue):
			return false, nil
		default:
			return err != nil, err
		}
	}
	count := 0
	switch value := value.(type) {
	case []any:
		count = len(value)
		for i, element := range value {
			if done, err := pass(int64(i), element); done {
				return err
			}
		}
	case map[string]any:
		count = len(value)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if done, err := pass(key, value[key]); done {
				return err
			}
		}
	case int64:
		count = int(value)
		if len(node.Pipe.Decl) > 1 {
			return s.errorf(node, "can't use %s to iterate over more than one variable", toText(value))
		}
		for i := range value {
			if done, err := pass(i, i); done {
				return err
			}
		}
	case nil, noValue:
	default:
		return s.errorf(node, "range can't iterate over %s", toText(value))
	}
	if count > 0 {
		return nil
	}
	return s.walkList(dot, node.ElseList)
}

// declareLoop sets the variables of a range: the element, or key and element.
func (s *state) declareLoop(pipe *parse.PipeNode, key, element any) {
	values := []any{element}
	if len(pipe.Decl) > 1 {
		values = []any{key, element}
	}
	for i, declaration := range pipe.Decl {
		if pipe.IsAssign {
			s.assign(declaration.Ident[0], values[i])
		} else {
			s.variables = append(s.variables, variable{declaration.Ident[0], values[i]})
		}
	}
}

func (s *state) assign(name string, value any) {
	for i := len(s.variables) - 1; i >= 0; i-- {
		if s.variables[i].name == name {
			s.variables[i].value = value
			return
		}
	}
}

func (s *state) call(dot any, node *parse.TemplateNode) error {
	tree := s.template.trees[node.Name]
	if tree == nil {
		return s.errorf(node, "template %q not defined", node.Name)
	}
	if s.depth == maxDepth {
		return s.errorf(node, "exceeded maximum template depth (%v)", maxDepth)
	}
	var argument any
	if node.Pipe != nil {
		var err error
		if argument, err = s.pipeline(dot, node.Pipe); err != nil {
			return err
		}
	}
	called := &state{template: s.template, w: s.w, depth: s.depth + 1, variables: []variable{{"$", argument}}}
	return called.walkList(argument, tree.Root)
}
