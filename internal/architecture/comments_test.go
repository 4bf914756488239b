package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declaration is a function or type with a doc comment.
type declaration struct{ name, firstWord, path string }

var firstWord = regexp.MustCompile(`^[\pL_][\pL\pN_]*`)

// TestDocComments_NameTheirOwn finds doc comments that were left behind when a declaration was moved or renamed: they begin with
// the name of a different declaration of the package.
func TestDocComments_NameTheirOwn(t *testing.T) {
	names := map[string][]string{} // by folder
	var documented []declaration
	eachSource(t, func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		add := func(name string, doc *ast.CommentGroup) {
			names[filepath.Dir(path)] = append(names[filepath.Dir(path)], name)
			if doc != nil {
				documented = append(documented, declaration{name, firstWord.FindString(doc.Text()), path})
			}
		}
		for _, declared := range file.Decls {
			switch declared := declared.(type) {
			case *ast.FuncDecl:
				add(declared.Name.Name, declared.Doc)
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					if spec, isType := spec.(*ast.TypeSpec); isType && len(declared.Specs) == 1 {
						add(spec.Name.Name, declared.Doc)
					} else if isType {
						add(spec.Name.Name, spec.Doc)
					}
				}
			}
		}
	})
	assert.Greater(t, len(documented), 1000)
	for _, d := range documented {
		if d.firstWord != d.name {
			assert.NotContains(t, names[filepath.Dir(d.path)], d.firstWord, "%s: the comment of %s names %s", d.path, d.name, d.firstWord)
		}
	}
}
