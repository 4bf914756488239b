package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are the operating systems whose packages are listed.
var platforms = []string{"linux", "darwin", "windows"}

// dependency is a module that packages for users import, directly or not.
type dependency struct {
	path  string
	users map[string]bool // folders of modules of this repository
	files map[string]bool // paths of its licence files
}

// licences is a known licence by a sentence of its text, in which all white space is one space.
var licences = []struct {
	name     string
	sentence *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License,? Version 2\.0`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms.*Neither (the )?name`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and/or distribute this software`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge`)},
}

// licenceFile matches the names of files with licences.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)[^/]*$`)

// writeLicences writes the licences of all dependencies to docs/LICENCES.md, and their texts to the file texts unless that is "".
// With diff it writes no document and fails if it differs. A licence that is not in the list of known ones is an error.
func writeLicences(ctx context.Context, root string, modules []*goModule, diff bool, texts string) error {
	all, err := dependencies(ctx, root, published(modules))
	if err != nil {
		return err
	}
	var table strings.Builder
	var full strings.Builder
	table.WriteString("| module | licence | imported by |\n|---|---|---|\n")
	for _, d := range all {
		names, text, err := d.read()
		if err != nil {
			return err
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", d.path, strings.Join(names, ", "), strings.Join(d.importers(modules), ", "))
		fmt.Fprintf(&full, "==== %s\n\n%s\n", d.path, text)
	}
	if texts != "" {
		if err := os.WriteFile(texts, []byte(full.String()), 0o600); err != nil {
			return err
		}
	}
	path := filepath.Join(root, "docs", "LICENCES.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, _, found := strings.Cut(string(page), "| module |")
	if !found {
		return fmt.Errorf("%s has no table of modules", path)
	}
	written := head + table.String()
	if diff {
		if written != string(page) {
			return errors.New("docs/LICENCES.md differs from the dependencies (run make licences)")
		}
		return nil
	}
	return os.WriteFile(path, []byte(written), 0o600)
}

// dependencies returns the modules of other projects that the packages for users import on any platform,
// sorted by path.
func dependencies(ctx context.Context, root string, modules []*goModule) ([]*dependency, error) {
	all := map[string]*dependency{}
	for _, m := range modules {
		for _, platform := range platforms {
			list := command{dir: filepath.Join(root, m.folder), env: []string{"GOOS=" + platform, "CGO_ENABLED=0"}, name: "go"}
			list.args = []string{"list", "-f", `{{if .GoFiles}}{{.ImportPath}} {{.Name}}{{end}}`, "./..."}
			text, err := output(ctx, list)
			if err != nil {
				return nil, err
			}
			list.args = []string{"list", "-deps", "-json=Dir,Module"}
			for line := range strings.Lines(text) {
				importPath, name, _ := strings.Cut(strings.TrimSpace(line), " ")
				if isPublic(importPath, name) || strings.Contains(importPath, "/cmd/") {
					list.args = append(list.args, importPath)
				}
			}
			if text, err = output(ctx, list); err != nil {
				return nil, err
			}
			if err := addDependencies(all, m, text); err != nil {
				return nil, fmt.Errorf("list the dependencies of %s: %w", m.path, err)
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *dependency) int { return cmp.Compare(a.path, b.path) }), nil
}

// addDependencies adds the packages in the output of go list to all.
func addDependencies(all map[string]*dependency, m *goModule, text string) error {
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var pkg struct {
			Dir    string
			Module *struct{ Path, Dir string }
		}
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if pkg.Module == nil || isOwn(pkg.Module.Path) {
			continue
		}
		d := all[pkg.Module.Path]
		if d == nil {
			d = &dependency{path: pkg.Module.Path, users: map[string]bool{}, files: map[string]bool{}}
			all[d.path] = d
		}
		d.users[m.folder] = true
		if err := d.addFiles(pkg.Dir, pkg.Module.Dir); err != nil {
			return err
		}
	}
}

// addFiles adds the licence files of a package: those of its folder, and of the folders above it in its module.
func (d *dependency) addFiles(dir, top string) error {
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && licenceFile.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
				d.files[filepath.Join(dir, entry.Name())] = true
			}
		}
		if dir == top {
			return nil
		}
	}
}

// read returns the names of the licences of a module and the text of its licence files.
func (d *dependency) read() (names []string, text string, err error) {
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, "", err
		}
		found := licencesOf(string(content))
		if len(found) == 0 {
			return nil, "", fmt.Errorf("%s: the licence is none of the known ones", path)
		}
		names = append(names, found...)
		text += string(content) + "\n"
	}
	if len(names) == 0 {
		return nil, "", fmt.Errorf("module %s has no licence file", d.path)
	}
	slices.Sort(names)
	return slices.Compact(names), text, nil
}

// licencesOf returns the licences in the text of a file.
func licencesOf(text string) (names []string) {
	text = strings.Join(strings.Fields(text), " ")
	for _, licence := range licences {
		if licence.name == "BSD-2-Clause" && slices.Contains(names, "BSD-3-Clause") {
			continue
		}
		if licence.sentence.MatchString(text) {
			names = append(names, licence.name)
		}
	}
	return names
}

// importers returns the modules of this repository that import the dependency, without those that require one of them.
func (d *dependency) importers(modules []*goModule) (names []string) {
	covered := map[string]bool{}
	for _, m := range modules { // each after its requirements
		if !d.users[m.folder] {
			continue
		}
		if !slices.ContainsFunc(m.requires, func(required string) bool { return covered[required] }) {
			names = append(names, cmp.Or(strings.Trim(m.folder, "."), "anykind"))
		}
		covered[m.path] = true
	}
	return names
}
