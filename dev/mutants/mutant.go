package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// mutant is a changed file: text replaces source[start:end].
type mutant struct {
	file       string // absolute
	source     []byte
	line       int
	column     int
	kind       string
	start, end int
	text       string
}

// content returns the changed file.
func (m mutant) content() []byte {
	return bytes.Join([][]byte{m.source[:m.start], []byte(m.text), m.source[m.end:]}, nil)
}

// String returns the place, the kind and the changed lines.
func (m mutant) String() string {
	first := bytes.LastIndexByte(m.source[:m.start], '\n') + 1
	last := len(m.source)
	if n := bytes.IndexByte(m.source[m.end:], '\n'); n >= 0 {
		last = m.end + n
	}
	before := string(m.source[first:last])
	after := string(m.source[first:m.start]) + m.text + string(m.source[m.end:last])
	return fmt.Sprintf("%s:%d: %s\n-%s\n+%s", m.file, m.line, m.kind,
		strings.ReplaceAll(before, "\n", "\n-"), strings.ReplaceAll(after, "\n", "\n+"))
}

// swapped maps operators to their replacements.
var swapped = map[token.Token]struct {
	kind string
	by   token.Token
}{
	token.LSS:  {"boundary", token.LEQ},
	token.LEQ:  {"boundary", token.LSS},
	token.GTR:  {"boundary", token.GEQ},
	token.GEQ:  {"boundary", token.GTR},
	token.EQL:  {"negated comparison", token.NEQ},
	token.NEQ:  {"negated comparison", token.EQL},
	token.LAND: {"swapped && and ||", token.LOR},
	token.LOR:  {"swapped && and ||", token.LAND},
	token.ADD:  {"swapped + and -", token.SUB},
	token.SUB:  {"swapped + and -", token.ADD},
}

// generator collects the mutants of a file.
type generator struct {
	name    string
	source  []byte
	files   *token.FileSet
	mutants []mutant
}

// mutantsOf returns the mutants of the functions of a file.
func mutantsOf(name string, source []byte) ([]mutant, error) {
	g := &generator{name: name, source: source, files: token.NewFileSet()}
	file, err := parser.ParseFile(g.files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		if function, isFunction := declaration.(*ast.FuncDecl); isFunction && function.Body != nil {
			ast.Inspect(function.Body, func(node ast.Node) bool {
				g.expression(node)
				g.statement(node)
				return true
			})
		}
	}
	return g.mutants, nil
}

// replace adds a mutant.
func (g *generator) replace(kind string, start, end token.Pos, text string) {
	from := g.files.Position(start)
	g.mutants = append(g.mutants, mutant{
		file: g.name, source: g.source, line: from.Line, column: from.Column, kind: kind,
		start: from.Offset, end: g.files.Position(end).Offset, text: text,
	})
}

// textOf returns the source of a node.
func (g *generator) textOf(node ast.Node) string {
	return string(g.source[g.files.Position(node.Pos()).Offset:g.files.Position(node.End()).Offset])
}

func (g *generator) expression(node ast.Node) {
	switch node := node.(type) {
	case *ast.BinaryExpr:
		if swap, found := swapped[node.Op]; found {
			g.replace(swap.kind, node.OpPos, node.OpPos+token.Pos(len(node.Op.String())), swap.by.String())
		}
	case *ast.BasicLit:
		if number, err := strconv.ParseInt(node.Value, 0, 64); err == nil && node.Kind == token.INT {
			g.replace("constant off by one", node.Pos(), node.End(), strconv.FormatInt(number+1, 10))
		}
	case *ast.Ident:
		switch node.Name {
		case "true":
			g.replace("other constant", node.Pos(), node.End(), "false")
		case "false":
			g.replace("other constant", node.Pos(), node.End(), "true")
		}
	}
}

func (g *generator) statement(node ast.Node) {
	switch node := node.(type) {
	case *ast.IfStmt:
		condition := g.textOf(node.Cond)
		kind := "branch never taken"
		if returns(node.Body) {
			kind = "removed early return"
		}
		if strings.Contains(condition, "err != nil") {
			kind = "dropped error check"
		}
		g.replace(kind, node.Cond.Pos(), node.Cond.End(), "false && ("+condition+")")
		if _, isComparison := node.Cond.(*ast.BinaryExpr); !isComparison {
			g.replace("negated condition", node.Cond.Pos(), node.Cond.End(), "!("+condition+")")
		}
	case *ast.BranchStmt:
		if node.Label == nil && node.Tok == token.CONTINUE {
			g.replace("removed statement", node.Pos(), node.End(), "")
		}
	case *ast.AssignStmt:
		if node.Tok != token.DEFINE && !allBlank(node.Lhs) {
			g.remove(node)
		}
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
		g.remove(node)
	}
}

// remove removes a statement. The mutant still uses its variables and packages, and compiles.
func (g *generator) remove(node ast.Node) {
	g.replace("removed statement", node.Pos(), node.End(), "_ = func() { "+g.textOf(node)+" }")
}

// returns reports whether a block ends with a return.
func returns(block *ast.BlockStmt) bool {
	if len(block.List) == 0 {
		return false
	}
	_, isReturn := block.List[len(block.List)-1].(*ast.ReturnStmt)
	return isReturn
}

func allBlank(expressions []ast.Expr) bool {
	for _, expression := range expressions {
		if name, isName := expression.(*ast.Ident); !isName || name.Name != "_" {
			return false
		}
	}
	return true
}
