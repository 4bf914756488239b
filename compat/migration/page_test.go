package migration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPage_HasEveryFunction compares the Go snippets of the page with the functions, in both directions.
func TestPage_HasEveryFunction(t *testing.T) {
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	require.NoError(t, err)
	source, err := os.ReadFile("clientgo.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "clientgo.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	var functions []string
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			begin, end := files.Position(function.Pos()).Offset, files.Position(function.End()).Offset
			functions = append(functions, string(source[begin:end]))
		}
	}
	var snippets []string
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```")
		for _, snippet := range strings.Split(code, "\n\nfunc ") {
			snippets = append(snippets, "func "+strings.TrimPrefix(snippet, "func "))
		}
	}
	assert.Equal(t, functions, snippets)
	assert.NotEmpty(t, functions)
}
