package main

import (
	"cmp"
	"context"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// dumpAPI writes the public API of each published module to docs/api. With diff it writes nothing and fails if a file differs.
func dumpAPI(ctx context.Context, root string, modules []*goModule, diff bool) error {
	var differing []string
	for _, m := range published(modules) {
		api, err := loadAPI(ctx, root, m)
		if err != nil {
			return err
		}
		slices.SortFunc(api.Packages, func(a, b *types.Package) int { return cmp.Compare(a.Path(), b.Path()) })
		var text strings.Builder
		for _, pkg := range api.Packages {
			fmt.Fprintf(&text, "package %s\n", pkg.Path())
			for _, line := range declarationsOf(pkg) {
				fmt.Fprintf(&text, "\t%s\n", line)
			}
		}
		path := filepath.Join(root, "docs", "api", strings.ReplaceAll(cmp.Or(strings.Trim(m.folder, "."), "anykind"), "/", "-")+".txt")
		if diff {
			written, err := os.ReadFile(path)
			if err != nil || string(written) != text.String() {
				differing = append(differing, filepath.Base(path))
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			return err
		}
	}
	if len(differing) > 0 {
		return fmt.Errorf("docs/api differs from the public API: %s (run make api)", strings.Join(differing, ", "))
	}
	return nil
}

// declarationsOf returns a line for each exported name, field and method of a package, sorted.
func declarationsOf(pkg *types.Package) []string {
	names := func(imported *types.Package) string {
		if imported == pkg {
			return ""
		}
		return imported.Name()
	}
	var lines []string
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		declared, isType := obj.(*types.TypeName)
		if !isType {
			lines = append(lines, unnamedResult.ReplaceAllString(types.ObjectString(obj, names), ""))
			continue
		}
		lines = append(lines, typeLines(declared, names)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// typeLines returns the lines of a type.
func typeLines(declared *types.TypeName, names types.Qualifier) []string {
	var lines []string
	head := "type " + types.TypeString(declared.Type(), names)
	named, isNamed := declared.Type().(*types.Named)
	switch under := declared.Type().Underlying().(type) {
	case *types.Struct:
		lines = append(lines, head+" struct")
		for field := range under.Fields() {
			if field.Exported() {
				lines = append(lines, fmt.Sprintf("%s struct, %s %s", head, field.Name(), types.TypeString(field.Type(), names)))
			}
		}
	case *types.Interface:
		lines = append(lines, head+" interface")
		for method := range under.Methods() {
			if token.IsExported(method.Name()) {
				lines = append(lines, fmt.Sprintf("%s interface, %s", head, signature(method, names)))
			}
		}
		return lines
	default:
		lines = append(lines, head+" "+types.TypeString(under, names))
	}
	if !isNamed {
		return lines // an alias
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	for method := range methods.Methods() {
		if function, isFunc := method.Obj().(*types.Func); isFunc && function.Exported() {
			lines = append(lines, fmt.Sprintf("method %s.%s", types.TypeString(named, names), signature(function, names)))
		}
	}
	return lines
}

// unnamedResult matches the name that the compiler gives to a result named "_".
var unnamedResult = regexp.MustCompile(`#rv\d+ `)

// signature returns the name, parameters and results of a method.
func signature(method *types.Func, names types.Qualifier) string {
	return method.Name() + unnamedResult.ReplaceAllString(strings.TrimPrefix(types.TypeString(method.Signature(), names), "func"), "")
}
