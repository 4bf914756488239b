package architecture_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bannedWords lists words that no declared identifier contains, with the field's word for each. CONTRIBUTING.md has the
// glossary.
var bannedWords = map[string]string{
	"alarm":    "idle timeout",
	"answer":   "response",
	"answered": "responded",
	"answers":  "responses",
	"asks":     "credential, authenticator",
	"beat":     "ping",
	"beside":   "previous version",
	"definers": "watched sources",
	"follower": "reflector",
	"garbled":  "decode failures",
	"goodbye":  "close",
	"hear":     "handle",
	"hears":    "handles",
	"holding":  "pool",
	"luck":     "hits",
	"meet":     "lookup",
	"mend":     "recover",
	"mends":    "recovers",
	"misfit":   "type mismatch",
	"moment":   "resource version",
	"refuse":   "validate, reject",
	"refused":  "invalid, rejected",
	"rivals":   "conflicts",
	"say":      "report",
	"says":     "reports",
	"showing":  "pool",
	"silence":  "idle timeout",
	"skipper":  "scanner",
	"stories":  "event series",
	"surely":   "",
	"tell":     "emit",
	"tells":    "emits",
	"tenure":   "lease term",
	"told":     "delivered",
	"touched":  "dirty",
	"unmet":    "reason",
	"unseen":   "final state unknown",
	"verdict":  "exit status",
	"wanted":   "",
	"who":      "credential",
}

// bannedNames lists whole identifiers that say too little alone.
var bannedNames = []string{"asking", "garble", "identity", "near", "other", "parts", "pause", "states", "take", "together", "until"}

// permittedNames lists declarations with a banned word that is the field's own, such as a connection that is refused, or the
// identity of a candidate of a leader election.
var permittedNames = []string{"isConnectionRefused", "Identity"}

// nouns lists type names that end in -ing and are no gerunds.
var nouns = []string{"binding", "encoding", "finding", "mapping", "ring", "setting", "string", "warning"}

var camelWord = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// words splits an identifier: DecodeYAMLList into decode, yaml, list.
func words(identifier string) []string {
	split := regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`).ReplaceAllString(identifier, "$1$3 $2$4")
	return strings.Fields(strings.ToLower(strings.Join(camelWord.FindAllString(split, -1), " ")))
}

// checkName returns an error if a declared identifier has a banned word or, for a type, ends in a gerund.
func checkName(name string, isType bool) error {
	if slices.Contains(permittedNames, name) {
		return nil
	}
	split := words(name)
	for _, word := range split {
		if better, banned := bannedWords[word]; banned {
			return fmt.Errorf("%s: %q is not a word of this field: use %q", name, word, better)
		}
	}
	if slices.Contains(bannedNames, strings.ToLower(name)) {
		return fmt.Errorf("%s says too little: see the glossary in CONTRIBUTING.md", name)
	}
	if last := split[max(len(split)-1, 0):]; isType && len(last) == 1 && strings.HasSuffix(last[0], "ing") && !slices.Contains(nouns, last[0]) {
		return fmt.Errorf("type %s is a gerund: name the thing or the agent", name)
	}
	return nil
}

func TestCheckName_Rules(t *testing.T) {
	assert.Equal(t, []string{"decode", "yaml", "list"}, words("DecodeYAMLList"))
	for _, c := range []struct {
		name      string
		isType    bool
		permitted bool
	}{
		{"reflector", true, true},
		{"follower", true, false},
		{"saysNothing", false, false},
		{"essays", false, true},
		{"listing", true, false},
		{"listing", false, true},
		{"Mapping", true, true},
		{"Warnings", true, true},
		{"Until", false, false},
		{"validUntil", false, true},
		{"isConnectionRefused", false, true},
	} {
		assert.Equal(t, c.permitted, checkName(c.name, c.isType) == nil, "%s", c.name)
	}
}

func TestDeclarations_UseTheGlossary(t *testing.T) {
	checked := 0
	eachSource(t, func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		check := func(id *ast.Ident, isType bool) {
			checked++
			if id.Name != "_" {
				assert.NoError(t, checkName(id.Name, isType), path)
			}
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				check(node.Name, false)
			case *ast.TypeSpec:
				check(node.Name, true)
			case *ast.StructType:
				for _, field := range node.Fields.List {
					for _, id := range field.Names {
						check(id, false)
					}
				}
			case *ast.InterfaceType:
				for _, method := range node.Methods.List {
					for _, id := range method.Names {
						check(id, false)
					}
				}
			}
			return true
		})
	})
	assert.Greater(t, checked, 1000)
}

const maxFilesInFolder = 25

func TestFolders_HaveFewFiles(t *testing.T) {
	count := map[string]int{}
	eachSource(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			count[filepath.Dir(path)]++
		}
	})
	for folder, files := range count {
		assert.LessOrEqual(t, files, maxFilesInFolder, "%s: an internal package hides in it", folder)
	}
}

func TestFiles_AreSnakeCase(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*\.go$`)
	eachSource(t, func(path string) { assert.Regexp(t, snake, filepath.Base(path), path) })
}

// eachSource calls do with the path of every Go file of every module.
func eachSource(t *testing.T, do func(path string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root(t), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go"):
			do(path)
		}
		return nil
	}))
}

const maxTestWords = 8

func TestTests_HaveShortNames(t *testing.T) {
	eachSource(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && strings.HasPrefix(function.Name.Name, "Test") {
				assert.LessOrEqual(t, len(words(function.Name.Name))-1, maxTestWords, "%s in %s: shorter, TestType_Method or TestFunc_Condition", function.Name.Name, path)
			}
		}
	})
}

// TestExportedDeclarations_NameNoInternalType keeps types of internal packages out of what users can call.
func TestExportedDeclarations_NameNoInternalType(t *testing.T) {
	checked := 0
	eachSource(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		internal := internalImports(file)
		for _, declared := range exportedTypes(file) {
			checked++
			ast.Inspect(declared, func(node ast.Node) bool {
				selector, ok := node.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if name, isName := selector.X.(*ast.Ident); isName && slices.Contains(internal, name.Name) {
					assert.Fail(t, "an exported declaration names "+name.Name+"."+selector.Sel.Name, path)
				}
				return false
			})
		}
	})
	assert.Greater(t, checked, 1000)
}

// internalImports returns the names of a file's imports of internal packages.
func internalImports(file *ast.File) (names []string) {
	for _, imported := range file.Imports {
		path := strings.Trim(imported.Path.Value, `"`)
		switch {
		case !strings.HasPrefix(path, module) || !strings.Contains(path, "/internal/"):
		case imported.Name != nil:
			names = append(names, imported.Name.Name)
		default:
			names = append(names, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	return names
}

// exportedTypes returns the types of a file's exported functions, methods, variables and fields.
func exportedTypes(file *ast.File) (types []ast.Expr) {
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if declaration.Name.IsExported() && (declaration.Recv == nil || isExportedReceiver(declaration.Recv)) {
				types = append(types, declaration.Type)
			}
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				types = append(types, exportedTypesOf(spec)...)
			}
		}
	}
	return types
}

func exportedTypesOf(spec ast.Spec) (types []ast.Expr) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		if spec.Type != nil && slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
			types = append(types, spec.Type)
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() || spec.Assign.IsValid() { // an alias gives the type a public name
			return nil
		}
		structure, isStruct := spec.Type.(*ast.StructType)
		if !isStruct {
			return []ast.Expr{spec.Type}
		}
		for _, field := range structure.Fields.List {
			if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
				types = append(types, field.Type)
			}
		}
	}
	return types
}

// isExportedReceiver reports whether the receiver is of an exported type.
func isExportedReceiver(receiver *ast.FieldList) bool {
	isExported := false
	ast.Inspect(receiver.List[0].Type, func(node ast.Node) bool {
		name, ok := node.(*ast.Ident)
		isExported = isExported || ok && name.IsExported()
		return !ok
	})
	return isExported
}
