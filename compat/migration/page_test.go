package migration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	require.NoError(t, err)
	return string(text)
}

// TestPage_HasEveryFunction compares the Go snippets of the page with the functions, in both directions.
func TestPage_HasEveryFunction(t *testing.T) {
	var functions []string
	for _, name := range []string{"clientgo.go", "../controllerruntime/migration/controllerruntime.go"} {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				begin := files.Position(function.Pos()).Offset
				end := files.Position(function.End()).Offset
				functions = append(functions, string(source[begin:end]))
			}
		}
	}
	var snippets []string
	for _, block := range strings.Split(page(t, "MIGRATION.md"), "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```")
		for _, snippet := range strings.Split(code, "\n\nfunc ") {
			snippets = append(snippets, "func "+strings.TrimPrefix(snippet, "func "))
		}
	}
	assert.Equal(t, functions, snippets)
	assert.NotEmpty(t, functions)
}

// TestPages_TablesNameDeclarations looks up each pkg.Name and Type.Member in the last column of the tables.
func TestPages_TablesNameDeclarations(t *testing.T) {
	declared := map[string]bool{}
	for _, folder := range []string{
		"cache", "controller", "controller/*", "discovery", "dynamic", "restmapper", "stream", "transport", "unstructured", "unstructured/manifest",
		"cli/flags", "cli/print", "compat/clientgo", "compat/restconfig", "metrics", "metrics/prommetrics",
	} {
		addDeclarations(t, declared, filepath.Join("../..", folder, "*.go"))
	}
	references := 0
	span := regexp.MustCompile("`[^`]+`")
	reference := regexp.MustCompile(`\b([A-Za-z]+)\.([A-Z]\w*)`)
	for line := range strings.Lines(page(t, "MIGRATION.md") + page(t, "PORTED.md")) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 {
			continue
		}
		for _, code := range span.FindAllString(cells[len(cells)-1], -1) {
			for _, found := range reference.FindAllStringSubmatch(code, -1) {
				if found[1] == "corev1" || found[1] == "apierrors" {
					continue
				}
				references++
				assert.True(t, declared[found[0]], "%s in: %s", found[0], line)
			}
		}
	}
	assert.Greater(t, references, 50)
}

// addDeclarations adds package.Name of the declarations in files, and Type.Member of methods and fields, also of
// methods that an embedded type promotes.
func addDeclarations(t *testing.T, declared map[string]bool, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	promoted := map[string]string{} // an unexported type to the type that embeds it
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				declared[receiver(file, node)+"."+node.Name.Name] = true
				return false
			case *ast.TypeSpec:
				declared[file.Name.Name+"."+node.Name.Name] = true
				if structure, ok := node.Type.(*ast.StructType); ok {
					for _, field := range structure.Fields.List {
						for _, fieldName := range field.Names {
							declared[node.Name.Name+"."+fieldName.Name] = true
						}
						if embedded, ok := field.Type.(*ast.Ident); ok && field.Names == nil && !embedded.IsExported() {
							promoted[embedded.Name] = node.Name.Name
						}
					}
				}
			}
			return true
		})
	}
	for declaration := range maps.Clone(declared) {
		receiver, method, _ := strings.Cut(declaration, ".")
		if outer := promoted[receiver]; outer != "" {
			declared[outer+"."+method] = true
		}
	}
}

// receiver returns the type of a method, or the package of a function.
func receiver(file *ast.File, function *ast.FuncDecl) string {
	if function.Recv == nil {
		return file.Name.Name
	}
	name := ""
	ast.Inspect(function.Recv.List[0].Type, func(node ast.Node) bool {
		if identifier, ok := node.(*ast.Ident); ok && name == "" {
			name = identifier.Name
		}
		return name == ""
	})
	return name
}
