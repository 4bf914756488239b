package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// declarations declares common names of the snippets, such as ctx and client. Snippets use them without a declaration.
//
//go:embed declarations.txt
var declarations string

// vetDocuments vets the Go snippets of README and docs.
func (u *user) vetDocuments(ctx context.Context) error {
	documents, err := filepath.Glob(filepath.Join(u.clone, "docs", "*.md"))
	if err != nil {
		return err
	}
	importable, err := u.importable(ctx)
	if err != nil {
		return err
	}
	dir, err := u.newModule(ctx, "documents", "package main\n\nfunc main() {}\n")
	if err != nil {
		return err
	}
	count := 0
	for _, document := range append([]string{filepath.Join(u.clone, "README.md")}, documents...) {
		if filepath.Base(document) == "MIGRATION.md" {
			continue // see migrationPackages
		}
		text, err := os.ReadFile(document)
		if err != nil {
			return err
		}
		for i, snippet := range snippets(string(text)) {
			count++
			name := fmt.Sprintf("%s%d", strings.ToLower(strings.TrimSuffix(filepath.Base(document), ".md")), i+1)
			if err := writeSnippet(filepath.Join(dir, name), snippet, importable); err != nil {
				return fmt.Errorf("%s, snippet %d: %w", filepath.Base(document), i+1, err)
			}
		}
	}
	if count == 0 {
		return errors.New("no Go snippets found")
	}
	for _, m := range u.modules {
		if _, err := output(ctx, u.proxy.goCommand(dir, "get", m.path+"@"+u.version)); err != nil {
			return err
		}
	}
	if _, err := output(ctx, u.proxy.goCommand(dir, "mod", "tidy", "-e")); err != nil {
		return err
	}
	fmt.Printf("release: %d snippets\n", count)
	if err := u.vetSnippets(ctx, dir); err != nil {
		return err
	}
	for _, pkg := range migrationPackages {
		if _, err := output(ctx, u.proxy.goCommand(dir, "get", rootPath+"/"+pkg+"@"+u.version)); err != nil {
			return err
		}
		if _, err := output(ctx, u.proxy.goCommand(dir, "vet", rootPath+"/"+pkg)); err != nil {
			return err
		}
	}
	return nil
}

// migrationPackages have the snippets of docs/MIGRATION.md.
var migrationPackages = []string{"compat/migration", "compat/controllerruntime/migration"}

// importable maps package names to the import paths of public packages and of the standard library.
func (u *user) importable(ctx context.Context) (map[string]string, error) {
	standard, err := output(ctx, u.proxy.goCommand(u.clone, "list", "std"))
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for pkg := range strings.FieldsSeq(standard) {
		if name := path.Base(pkg); isPublic(pkg, name) && (paths[name] == "" || len(pkg) < len(paths[name])) {
			paths[name] = pkg
		}
	}
	for _, m := range u.modules {
		all, err := u.packages(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, pkg := range all {
			if isPublic(pkg.ImportPath, pkg.Name) {
				paths[pkg.Name] = pkg.ImportPath
			}
		}
	}
	return paths, nil
}

// snippets returns the Go code blocks of a Markdown text.
func snippets(text string) []string {
	var all []string
	for _, block := range strings.Split(text, "\n```go\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```")
		all = append(all, strings.ReplaceAll(code, "…", "// …")+"\n")
	}
	return all
}

// writeSnippet writes the package of a snippet. A program is written as it is. Declarations and statements get their imports.
func writeSnippet(dir, snippet string, importable map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if strings.HasPrefix(snippet, "package ") {
		return os.WriteFile(filepath.Join(dir, "snippet.go"), []byte(snippet), 0o600)
	}
	files := token.NewFileSet()
	prelude, err := parser.ParseFile(files, "declarations.go", declarations, parser.ImportsOnly)
	if err != nil {
		return err
	}
	importable = maps.Clone(importable)
	for _, spec := range prelude.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		importable[path.Base(imported)] = imported
	}
	body := snippet
	if _, err := parser.ParseFile(files, "snippet.go", "package snippet\n"+body, parser.SkipObjectResolution); err != nil {
		body = "func _() {\n" + snippet + "}\n"
	}
	file, err := parser.ParseFile(files, "snippet.go", "package snippet\n"+body, 0)
	if err != nil {
		return err
	}
	imports := map[string]bool{}
	unresolved := map[string]bool{}
	for _, name := range file.Unresolved {
		unresolved[name.Name] = true
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && unresolved[name.Name] && importable[name.Name] != "" {
				imports[importable[name.Name]] = true
			}
		}
		return true
	})
	var b strings.Builder
	b.WriteString("package snippet\n\n")
	for _, imported := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "import %q\n", imported)
	}
	b.WriteString(body)
	return errors.Join(os.WriteFile(filepath.Join(dir, "snippet.go"), []byte(b.String()), 0o600),
		os.WriteFile(filepath.Join(dir, "declarations.go"), []byte(declarations), 0o600))
}

// unusedVariable matches the compiler error for an unused variable.
var unusedVariable = regexp.MustCompile(`(?m)^(.+\.go):(\d+):(\d+): declared and not used: (\w+)$`)

// vetSnippets vets the packages below dir. A snippet may end before it uses its variables: unused variables get an assignment to
// _.
func (u *user) vetSnippets(ctx context.Context, dir string) error {
	if _, err := output(ctx, u.proxy.goCommand(dir, "build", "-gcflags=-e", "./...")); err != nil {
		for _, match := range slices.Backward(unusedVariable.FindAllStringSubmatch(err.Error(), -1)) {
			line, lineErr := strconv.Atoi(match[2])
			column, columnErr := strconv.Atoi(match[3])
			if err := errors.Join(lineErr, columnErr, useVariable(filepath.Join(dir, match[1]), line, column, match[4])); err != nil {
				return err
			}
		}
	}
	_, err := output(ctx, u.proxy.goCommand(dir, "vet", "./..."))
	return err
}

// useVariable inserts "_ = name" after the statement with the declaration at line and column.
func useVariable(path string, line, column int, name string) error {
	code, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, code, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	tokens := files.File(file.FileStart)
	declared := tokens.LineStart(line) + token.Pos(column-1)
	end := 0
	ast.Inspect(file, func(node ast.Node) bool {
		for _, statement := range statements(node) {
			if statement.Pos() <= declared && declared < statement.End() {
				end = tokens.Offset(statement.End())
			}
		}
		return true
	})
	return os.WriteFile(path, slices.Insert(code, end, []byte("; _ = "+name)...), 0o600)
}

// statements returns the statements of a block or case.
func statements(node ast.Node) []ast.Stmt {
	switch node := node.(type) {
	case *ast.BlockStmt:
		return node.List
	case *ast.CaseClause:
		return node.Body
	case *ast.CommClause:
		return node.Body
	}
	return nil
}
