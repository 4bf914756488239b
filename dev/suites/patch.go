package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// patch changes a file of an upstream module. It fails unless it matches exactly the expected number of times, so that a
// different version of the module is never patched by half.
type patch interface {
	// apply changes the module in dir.
	apply(dir string) error
}

// replaceText replaces an exact text.
type replaceText struct {
	file, old, new string
	count          int // number of matches; 0 means 1
}

func (p replaceText) apply(dir string) error {
	return edit(dir, p.file, func(source []byte) ([]byte, error) {
		if n := bytes.Count(source, []byte(p.old)); n != max(p.count, 1) {
			return nil, fmt.Errorf("%q occurs %d times, want %d", p.old, n, max(p.count, 1))
		}
		return bytes.ReplaceAll(source, []byte(p.old), []byte(p.new)), nil
	})
}

// replaceCalls replaces the called function in each call: in old(a, b) only old changes.
type replaceCalls struct {
	file     string
	old, new string // such as dynamic.NewForConfig
	count    int    // of calls
	imports  string // the package of new, imported under new's qualifier; "" if new needs no import
}

func (p replaceCalls) apply(dir string) error {
	return edit(dir, p.file, func(source []byte) ([]byte, error) {
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, p.file, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		var found []span
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if textOf(positions, source, call.Fun) == p.old {
					found = append(found, spanOf(positions, call.Fun))
				}
			}
			return true
		})
		if len(found) != p.count {
			return nil, fmt.Errorf("%d calls of %s, want %d", len(found), p.old, p.count)
		}
		isImported := slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == strconv.Quote(p.imports) })
		if p.imports != "" && !isImported {
			name, _, _ := strings.Cut(p.new, ".")
			end := positions.Position(file.Name.End()).Offset
			found = append(found, span{end, end, "\n\nimport " + name + " " + strconv.Quote(p.imports)})
		}
		return replaceSpans(source, found, p.new), nil
	})
}

// dropAssertions replaces Gomega's assertion of a value by an assignment: g.Expect(actual).To(gmg.Equal(expected)) becomes _ =
// expected, so that its variables stay in use.
type dropAssertions struct {
	file, actual string // actual is the asserted expression
	count        int
}

func (p dropAssertions) apply(dir string) error {
	return edit(dir, p.file, func(source []byte) ([]byte, error) {
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, p.file, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		var found []span
		ast.Inspect(file, func(node ast.Node) bool {
			statement, ok := node.(*ast.ExprStmt)
			if !ok || !strings.HasPrefix(textOf(positions, source, statement), "g.Expect("+p.actual+").To(") {
				return true
			}
			matcher, ok := statement.X.(*ast.CallExpr).Args[0].(*ast.CallExpr)
			if ok && len(matcher.Args) == 1 {
				s := spanOf(positions, statement)
				s.text = "_ = " + textOf(positions, source, matcher.Args[0])
				found = append(found, s)
			}
			return false
		})
		if len(found) != p.count {
			return nil, fmt.Errorf("%d assertions of %s, want %d", len(found), p.actual, p.count)
		}
		return replaceSpans(source, found, ""), nil
	})
}

// span is a part of a file.
type span struct {
	start, end int
	text       string // its replacement; "" means the common replacement
}

func spanOf(positions *token.FileSet, node ast.Node) span {
	return span{start: positions.Position(node.Pos()).Offset, end: positions.Position(node.End()).Offset}
}

func textOf(positions *token.FileSet, source []byte, node ast.Node) string {
	s := spanOf(positions, node)
	return string(source[s.start:s.end])
}

// replaceSpans replaces spans that do not overlap.
func replaceSpans(source []byte, spans []span, text string) []byte {
	slices.SortFunc(spans, func(a, b span) int { return b.start - a.start })
	for _, s := range spans {
		if s.text == "" {
			s.text = text
		}
		source = slices.Replace(source, s.start, s.end, []byte(s.text)...)
	}
	return source
}

// edit rewrites a file of the module in dir.
func edit(dir, name string, change func(source []byte) ([]byte, error)) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	source, err := os.ReadFile(path)
	if err == nil {
		source, err = change(source)
	}
	if err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	return os.WriteFile(path, source, 0o600)
}
