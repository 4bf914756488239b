package gotemplate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/template/parse"
)

// Both end an iteration of a range.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// maxDepth is the maximum depth of templates that invoke templates.
const maxDepth = 100_000

// walk executes a node and writes its output.
func (e *execution) walk(dot value, node parse.Node) error {
	e.node = node
	switch node := node.(type) {
	case *parse.ActionNode:
		return e.walkAction(dot, node)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	case *parse.CommentNode:
		return nil
	case *parse.IfNode:
		return e.walkCondition(dot, &node.BranchNode, false)
	case *parse.WithNode:
		return e.walkCondition(dot, &node.BranchNode, true)
	case *parse.ListNode:
		for _, node := range node.Nodes {
			if err := e.walk(dot, node); err != nil {
				return err
			}
		}
		return nil
	case *parse.RangeNode:
		return e.walkRange(dot, node)
	case *parse.TemplateNode:
		return e.walkTemplate(dot, node)
	case *parse.TextNode:
		_, err := e.w.Write(node.Text)
		return err
	default:
		return e.errorf("unknown node: %s", node)
	}
}

// walkAction prints the value of a pipeline, unless it declares variables.
func (e *execution) walkAction(dot value, node *parse.ActionNode) error {
	result, err := e.pipeline(dot, node.Pipe)
	if err != nil || len(node.Pipe.Decl) > 0 {
		return err
	}
	if !result.isValid {
		result.data = "<no value>"
	}
	_, err = fmt.Fprint(e.w, result.data)
	return err
}

// walkCondition executes if, and with, which sets dot.
func (e *execution) walkCondition(dot value, node *parse.BranchNode, setsDot bool) error {
	defer e.drop(len(e.variables))
	condition, err := e.pipeline(dot, node.Pipe)
	switch {
	case err != nil:
		return err
	case condition.isTrue() && setsDot:
		return e.walk(condition, node.List)
	case condition.isTrue():
		return e.walk(dot, node.List)
	case node.ElseList != nil:
		return e.walk(dot, node.ElseList)
	default:
		return nil
	}
}

func (e *execution) walkRange(dot value, node *parse.RangeNode) error {
	defer e.drop(len(e.variables))
	over, err := e.pipeline(dot, node.Pipe)
	if err != nil {
		return err
	}
	count := 0
	mark := len(e.variables)
	iterate := func(index, element value) error {
		count++
		defer e.drop(mark)
		if err := e.setRangeVariables(node.Pipe, index, element); err != nil {
			return err
		}
		if err := e.walk(element, node.List); !errors.Is(err, errContinue) {
			return err
		}
		return nil
	}
	switch err := e.each(over, node.Pipe, iterate); {
	case errors.Is(err, errBreak):
		return nil
	case err != nil:
		return err
	case count == 0 && node.ElseList != nil:
		return e.walk(dot, node.ElseList)
	default:
		return nil
	}
}

// each calls iterate for the elements of a value until it returns an error.
func (e *execution) each(over value, pipe *parse.PipeNode, iterate func(index, element value) error) error {
	switch data := over.data.(type) {
	case nil:
		return nil
	case []any:
		for i, element := range data {
			if err := iterate(concrete(i), boxed(element)); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if err := iterate(concrete(key), boxed(data[key])); err != nil {
				return err
			}
		}
		return nil
	case int:
		return eachNumber(e, data, pipe, iterate)
	case int64:
		return eachNumber(e, data, pipe, iterate)
	case uint8:
		return eachNumber(e, data, pipe, iterate)
	default:
		return e.errorf("range can't iterate over %v", data)
	}
}

func eachNumber[T int | int64 | uint8](e *execution, count T, pipe *parse.PipeNode, iterate func(index, element value) error) error {
	if len(pipe.Decl) > 1 {
		return e.errorf("can't use %v to iterate over more than one variable", count)
	}
	for i := T(0); i < count; i++ {
		if err := iterate(value{}, concrete(i)); err != nil {
			return err
		}
	}
	return nil
}

// setRangeVariables sets the variables of a range: the element, or the index and the element.
func (e *execution) setRangeVariables(pipe *parse.PipeNode, index, element value) error {
	values := []value{index, element}[2-len(pipe.Decl):]
	for i, declared := range pipe.Decl {
		if !pipe.IsAssign {
			e.variables[len(e.variables)-len(pipe.Decl)+i].value = values[i]
		} else if err := e.set(declared.Ident[0], values[i]); err != nil {
			return err
		}
	}
	return nil
}

// walkTemplate invokes a template. It inherits no variables.
func (e *execution) walkTemplate(dot value, node *parse.TemplateNode) error {
	tree := e.template.trees[node.Name]
	if tree == nil {
		return e.errorf("template %q not defined", node.Name)
	}
	if e.depth == maxDepth {
		return e.errorf("exceeded maximum template depth (%v)", maxDepth)
	}
	argument, err := e.pipeline(dot, node.Pipe)
	if err != nil {
		return err
	}
	invoked := *e
	invoked.depth++
	invoked.tree = tree
	invoked.variables = []variable{{"$", argument}}
	return invoked.walk(argument, tree.Root)
}
