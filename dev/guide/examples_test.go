package guide

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calls are the names of this repository's public functions, as PACKAGE.NAME, and of its methods, as .NAME, in its source.
type calls struct {
	declared map[string][]string        // folders of the packages by name
	shown    map[string]map[string]bool // folders of the Examples by called name
}

// withoutExample are methods of the guide's programs without an Example, and the reason.
var withoutExample = map[string]string{
	".Decode": "of json.Decoder",
	".Len":    "a number of objects",
	".Write":  "of net.Conn",
}

var (
	qualified = regexp.MustCompile(`\b[a-z]\w*\.[A-Z]\w*`)
	notPublic = regexp.MustCompile(`/(\..+|internal|testdata|examples|dev)$`)
)

// TestGuide_FunctionsHaveExamples checks that an Example of the package calls each function that a page names with its package, and
// that some Example calls each method of the programs.
func TestGuide_FunctionsHaveExamples(t *testing.T) {
	all := readCalls(t, "../..")
	index, err := os.ReadFile("../../docs/README.md")
	require.NoError(t, err)
	for _, page := range pages(string(index)) {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		require.NoError(t, err)
		for _, name := range qualified.FindAllString(string(text), -1) {
			for _, folder := range all.declared[name] {
				assert.True(t, all.shown[name][folder], "%s: no Example of %s calls %s", page, folder, name)
			}
		}
		programs, err := programsOf(page, string(text))
		require.NoError(t, err)
		for _, p := range programs {
			file, err := parser.ParseFile(token.NewFileSet(), p.name, p.source, 0)
			require.NoError(t, err)
			for _, name := range called(file, file) {
				if strings.HasPrefix(name, ".") && all.declared[name] != nil && withoutExample[name] == "" {
					assert.NotEmpty(t, all.shown[name], "%s: no Example calls the method %s", p.name, name)
				}
			}
		}
	}
}

// readCalls reads the public packages and the Examples below a folder.
func readCalls(t *testing.T, root string) *calls {
	t.Helper()
	all := &calls{map[string][]string{}, map[string]map[string]bool{}}
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		relative := filepath.ToSlash(strings.TrimPrefix(name, root))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && notPublic.MatchString(relative):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err == nil && file.Name.Name != "main" {
			all.add(path.Dir(relative)[1:], file, strings.HasSuffix(name, "_test.go"))
		}
		return err
	}))
	require.NotEmpty(t, all.declared)
	return all
}

// add adds the declarations of a file, or what the Examples of a test's file call.
func (c *calls) add(folder string, file *ast.File, isTest bool) {
	for _, declaration := range file.Decls {
		function, isFunction := declaration.(*ast.FuncDecl)
		switch {
		case !isFunction:
		case isTest && strings.HasPrefix(function.Name.Name, "Example"):
			for _, name := range called(file, function.Body) {
				if c.shown[name] == nil {
					c.shown[name] = map[string]bool{}
				}
				c.shown[name][folder] = true
			}
		case !isTest && function.Name.IsExported():
			name := "." + function.Name.Name
			if function.Recv == nil {
				name = file.Name.Name + name
			}
			c.declared[name] = append(c.declared[name], folder)
		}
	}
}

// called returns the selectors of a node: PACKAGE.NAME of imports of the file, .NAME of everything else.
func called(file *ast.File, node ast.Node) (names []string) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		name := path.Base(strings.Trim(spec.Path.Value, `"`))
		imports[name] = name
		if spec.Name != nil {
			imports[spec.Name.Name] = name
		}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			of := ""
			if x, ok := selector.X.(*ast.Ident); ok {
				of = imports[x.Name]
			}
			names = append(names, of+"."+selector.Sel.Name)
		}
		return true
	})
	return names
}
