// Package gotemplate executes templates of text/template over decoded JSON: maps, lists, strings, numbers, booleans and nil.
//
// text/template calls methods of any type by name. A program with text/template therefore contains all exported methods of its
// types, 3 MB in the case of anyctl. Decoded JSON has no methods. This package parses with text/template/parse and executes without
// methods. Output and errors are the same (https://pkg.go.dev/text/template).
package gotemplate

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"text/template/parse"
)

// Template is a parsed template with the templates that it defines. It is safe for concurrent use.
type Template struct {
	name         string
	trees        map[string]*parse.Tree
	functions    map[string]function
	missingError bool // a missing key of a map is an error
}

// Options configure [Parse].
type Options struct {
	// MissingKeyError makes a missing key of a map an error. By default its value is printed as "<no value>".
	MissingKeyError bool
	// Strings are additional functions of a string, by name.
	Strings map[string]func(string) (string, error)
	// Values are additional functions of one value and more.
	Values map[string]func(value any, others ...any) any
}

// Parse parses a template. name is for errors.
func Parse(name, text string, opts *Options) (*Template, error) {
	t := &Template{name: name, functions: maps.Clone(builtins), missingError: opts.MissingKeyError}
	for name, call := range opts.Strings {
		t.functions[name] = ofString(call)
	}
	for name, call := range opts.Values {
		t.functions[name] = function{fixed: 1, isVariadic: true, call: func(args []value) (value, error) {
			all := anyOf(args)
			return concrete(call(all[0], all[1:]...)), nil
		}}
	}
	names := map[string]any{}
	for name := range t.functions {
		names[name] = true // any value
	}
	var err error
	t.trees, err = parse.Parse(name, text, "", "", names)
	return t, err
}

// Execute writes the output for data. An error may follow a part of the output.
func (t *Template) Execute(w io.Writer, data any) error {
	root := concrete(data)
	e := &execution{template: t, tree: t.trees[t.name], w: w, variables: []variable{{"$", root}}}
	return e.walk(root, e.tree.Root)
}

// value is a value of an expression.
type value struct {
	data    any
	isValid bool // false for a missing value
	isBoxed bool // an element of a map or list: its type is interface {}
}

func concrete(data any) value { return value{data: data, isValid: data != nil} }

func boxed(data any) value { return value{data, true, true} }

// unbox returns the concrete value. A boxed nil becomes a missing value.
func (v value) unbox() value {
	if v.isBoxed {
		return concrete(v.data)
	}
	return v
}

// typeName returns the Go type for errors.
func (v value) typeName() string {
	if v.isBoxed {
		return "interface {}"
	}
	return fmt.Sprintf("%T", v.data)
}

// isTrue reports whether a value is neither missing, false, zero nor empty.
func (v value) isTrue() bool {
	switch data := v.data.(type) {
	case nil:
		return false
	case bool:
		return data
	case string:
		return data != ""
	case []any:
		return len(data) > 0
	case map[string]any:
		return len(data) > 0
	default:
		n := numberOf(data)
		return n.integer != 0 || n.unsigned != 0 || n.float != 0 || n.complex != 0
	}
}

// execution is the state of an Execute.
type execution struct {
	template  *Template
	tree      *parse.Tree
	w         io.Writer
	node      parse.Node // being evaluated, for errors
	variables []variable
	depth     int // of invoked templates
}

type variable struct {
	name  string
	value value
}

// errorf returns an error at the current node.
func (e *execution) errorf(format string, args ...any) error {
	location, context := e.tree.ErrorContext(e.node)
	where := fmt.Sprintf("template: %s: executing %q at <%s>: ", location, e.tree.Name, context)
	return fmt.Errorf(strings.ReplaceAll(where, "%", "%%")+format, args...)
}

// variable returns the variable of a name that was declared last.
func (e *execution) variable(name string) (*variable, error) {
	for i := len(e.variables) - 1; i >= 0; i-- {
		if e.variables[i].name == name {
			return &e.variables[i], nil
		}
	}
	return nil, e.errorf("undefined variable: %s", name)
}

func (e *execution) set(name string, value value) error {
	found, err := e.variable(name)
	if err == nil {
		found.value = value
	}
	return err
}

// drop removes the variables declared since there were count of them.
func (e *execution) drop(count int) { e.variables = e.variables[:count] }
