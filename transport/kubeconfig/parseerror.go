package kubeconfig

import "fmt"

// ParseError says where a document is not a kubeconfig, and why. It quotes names, never values: those may be secrets.
type ParseError struct {
	// Path is the file's name; "" where the document was no file.
	Path string
	// Line and Column count from 1; 0 means unknown. They stand on the value that is wrong or, in broken YAML, where
	// reading stopped.
	Line, Column int
	// Problem says what is wrong and what to do.
	Problem string
}

// Error is "path:line:column: not a kubeconfig: problem", as compilers and editors write it.
func (e *ParseError) Error() string {
	problem := "not a kubeconfig: " + e.Problem
	switch {
	case e.Path != "" && e.Line > 0 && e.Column > 0:
		return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, problem)
	case e.Path != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, problem)
	case e.Path != "":
		return fmt.Sprintf("%s: %s", e.Path, problem)
	case e.Line > 0 && e.Column > 0:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, problem)
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, problem)
	default:
		return problem
	}
}
