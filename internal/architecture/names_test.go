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
var nouns = []string{"binding", "encoding", "mapping", "ring", "setting", "string", "warning"}

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
