package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNextMinor_AfterLastVersion(t *testing.T) {
	for last, want := range map[string]string{"": "v0.1.0", "v0.1.0": "v0.2.0", "v0.9.3": "v0.10.0", "v1.2.3": "v1.3.0"} {
		got, err := nextMinor(last)
		require.NoError(t, err)
		assert.Equal(t, want, got, "after %q", last)
	}
}

func TestReadModules_Repository(t *testing.T) {
	modules, err := readModules("../..")
	require.NoError(t, err)
	var tags []string
	for _, m := range published(modules) {
		tags = append(tags, m.tag("v0.1.0"))
		assert.False(t, m.replaces, m.path)
	}
	assert.Equal(t, []string{
		"v0.1.0", "sandbox/v0.1.0", "apitest/v0.1.0", "cli/v0.1.0", "compat/v0.1.0", "metrics/v0.1.0", "apitest/cel/v0.1.0",
		"apitest/clients/v0.1.0", "compat/controllerruntime/v0.1.0",
	}, tags)
	assert.Equal(t, "\tgit push origin main sandbox/v0.1.0 apitest/v0.1.0 cli/v0.1.0 compat/v0.1.0 metrics/v0.1.0 apitest/cel/v0.1.0 apitest/clients/v0.1.0 compat/controllerruntime/v0.1.0\n"+
		"\tgit push origin v0.1.0\n", pushCommands(modules, "v0.1.0"))
}

func TestLicencesOf_KnownTexts(t *testing.T) {
	for text, want := range map[string][]string{
		"Apache License\n                           Version 2.0, January 2004":                                       {"Apache-2.0"},
		"Redistribution and use in source\nand binary forms, with or without ... * Neither the\nname of Google Inc.": {"BSD-3-Clause"},
		"Redistribution and use in source and binary forms, with or without modification":                            {"BSD-2-Clause"},
		"MIT License\nPermission is hereby granted, free of charge, to any person":                                   {"MIT"},
		"Permission to use, copy, modify, and/or distribute this software for any purpose":                           {"ISC"},
		"under the Apache License, Version 2.0. Parts: Permission is hereby granted, free of charge":                 {"Apache-2.0", "MIT"},
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                                       nil,
	} {
		assert.Equal(t, want, licencesOf(text), text)
	}
}

func TestDependency_ReadRejectsUnknownLicence(t *testing.T) {
	dir := t.TempDir()
	d := &dependency{path: "example.com/m", files: map[string]bool{}}
	_, _, err := d.read()
	require.EqualError(t, err, "module example.com/m has no licence file")
	path := filepath.Join(dir, "pkg", "COPYING")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("All rights reserved."), 0o600))
	require.NoError(t, d.addFiles(filepath.Dir(path), dir))
	_, _, err = d.read()
	require.EqualError(t, err, path+": the licence is none of the known ones")
}

func TestSortModules_Errors(t *testing.T) {
	for want, modules := range map[string]map[string]*goModule{
		"module a requires itself through other modules":     {"a": {path: "a", requires: []string{"b"}}, "b": {path: "b", requires: []string{"a"}}},
		".ci/modules lacks b, which other modules require":   {"a": {path: "a", requires: []string{"b"}}},
		"module a is published and requires b, which is not": {"a": {path: "a", requires: []string{"b"}, published: true}, "b": {path: "b"}},
	} {
		_, err := sortModules(modules)
		assert.EqualError(t, err, want)
	}
}

func TestWriteChangelog_MovesUnreleasedChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "CHANGELOG.md")
	require.NoError(t, os.WriteFile(path, []byte("# Changelog\n\nNewest first. There is no release yet.\n\n## Unreleased\n\n- A change.\n"), 0o600))
	date := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	require.NoError(t, writeChangelog(path, "v0.1.0", date))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "# Changelog\n\nNewest first.\n\n## Unreleased\n\n## v0.1.0, 2030-01-02\n\n- A change.\n", string(text))
	assert.Equal(t, "- A change.", changelogSection(string(text), "v0.1.0"))
	assert.Empty(t, changelogSection(string(text), "Unreleased"))
	assert.Empty(t, changelogSection(string(text), "v0.1"))
	require.NoError(t, os.WriteFile(path, []byte("# Changelog\n"), 0o600))
	assert.ErrorContains(t, writeChangelog(path, "v0.2.0", date), "not exactly one heading")
}

func TestLineChanges_IgnoresOrder(t *testing.T) {
	assert.Equal(t, "-b\n+d\n", lineChanges("a\nb\nc\n", "c\na\nd\n"))
	assert.Empty(t, lineChanges("a\nb\n", "b\na\n"))
}

func TestWriteSnippet_AddsImportsAndDeclarations(t *testing.T) {
	importable := map[string]string{"fmt": "fmt", "dynamic": "example.com/dynamic"}
	for name, c := range map[string]struct{ snippet, want string }{
		"program":      {"package main\n\nfunc main() {}\n", "package main\n\nfunc main() {}\n"},
		"declarations": {"func f() { fmt.Println(x) }\n", "package snippet\n\nimport \"fmt\"\nfunc f() { fmt.Println(x) }\n"},
		"statements":   {"dynamic := 1\nfmt.Println(dynamic.x, rest.Config{})\n", "package snippet\n\nimport \"fmt\"\nimport \"k8s.io/client-go/rest\"\nfunc _() {\ndynamic := 1\nfmt.Println(dynamic.x, rest.Config{})\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, writeSnippet(dir, c.snippet, importable))
			text, err := os.ReadFile(filepath.Join(dir, "snippet.go"))
			require.NoError(t, err)
			assert.Equal(t, c.want, string(text))
		})
	}
	assert.Error(t, writeSnippet(t.TempDir(), "func {\n", importable))
	assert.Equal(t, []string{"a\n", "b // …\n"}, snippets("x\n```go\na\n```\n\n```go\nb …\n```\n"))
}

// newRepository makes a repository of one published module with a commit and, for a version, its tag.
func newRepository(t *testing.T, version string) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module " + rootPath + "\n\ngo 1.26.0\n", "go.work": "go 1.26.0\n\nuse .\n", "a/a.go": "package a\n\nfunc F() int { return 1 }\n",
		".ci/modules": ". users none 1\n", "CHANGELOG.md": "# Changelog\n\n## Unreleased\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	commit(t, dir, "init", "-q")
	for _, setting := range []string{"user.name=Tester", "user.email=tester@example.com"} {
		name, value, _ := strings.Cut(setting, "=")
		commit(t, dir, "config", name, value)
	}
	commit(t, dir, "add", "-A")
	commit(t, dir, "commit", "-qm", "First")
	if version != "" {
		commit(t, dir, "tag", version)
	}
	return dir
}

func commit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	printed, err := git(t.Context(), dir, args...)
	require.NoError(t, err)
	return printed
}

func TestIncompatibleChanges_SinceTag(t *testing.T) {
	for name, c := range map[string]struct{ code, want string }{
		"compatible":      {"package a\n\nfunc F() int { return 2 }\n\nfunc G() {}\n", ""},
		"function":        {"package a\n\nfunc F() string { return \"\" }\n", "F: changed from func() int to func() string"},
		"removed package": {"package main\n\nfunc main() {}\n", "anykind/a: removed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRepository(t, "v0.1.0")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "a.go"), []byte(c.code), 0o600))
			modules, err := readModules(dir)
			require.NoError(t, err)
			last, err := lastVersion(t.Context(), dir)
			require.NoError(t, err)
			assert.Equal(t, "v0.1.0", last)
			changes, err := incompatibleChanges(t.Context(), dir, modules, last)
			require.NoError(t, err)
			if c.want == "" {
				assert.Empty(t, changes)
			} else {
				assert.Contains(t, changes, c.want)
			}
			changes, err = incompatibleChanges(t.Context(), dir, nil, last)
			require.NoError(t, err)
			assert.Equal(t, "\t"+rootPath+": module removed\n", changes)
		})
	}
}

func TestCheckChanges_Rules(t *testing.T) {
	for _, c := range []struct{ incompatible, last, version, announced, want string }{
		{"", "v0.1.0", "v0.1.1", "", ""},
		{"F: removed", "v0.1.0", "v0.1.1", "- F is gone.", "needs a new minor version"},
		{"F: removed", "v0.1.0", "v0.2.0", "", "CHANGELOG has nothing below Unreleased"},
		{"F: removed", "v0.1.0", "v0.2.0", "- F is gone.", ""},
		{"F: removed", "v0.9.0", "v1.0.0", "- F is gone.", ""},
		{"F: removed", "v1.1.0", "v1.2.0", "- F is gone.", "must be compatible with v1.1.0"},
	} {
		err := checkChanges(c.incompatible, c.last, c.version, c.announced)
		if c.want == "" {
			assert.NoError(t, err, "%+v", c)
		} else {
			assert.ErrorContains(t, err, c.want, "%+v", c)
		}
	}
}

func TestUseVariable_AfterItsStatement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.go")
	require.NoError(t, os.WriteFile(path, []byte("package a\n\nfunc _() {\n\tx := 1 // one\n\tgo func() {\n\t\ty := 2\n\t}()\n}\n"), 0o600))
	errs := "# a\na.go:4:2: declared and not used: x\na.go:6:3: declared and not used: y\na.go:7:1: undefined: z\n"
	assert.Len(t, unusedVariable.FindAllString(errs, -1), 2)
	require.NoError(t, useVariable(path, 6, 3, "y"))
	require.NoError(t, useVariable(path, 4, 2, "x"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "package a\n\nfunc _() {\n\tx := 1; _ = x // one\n\tgo func() {\n\t\ty := 2; _ = y\n\t}()\n}\n", string(text))
}

func TestPrepare_CommitsAndTags(t *testing.T) {
	dir := newRepository(t, "")
	modules, err := readModules(dir)
	require.NoError(t, err)
	require.NoError(t, prepare(t.Context(), dir, modules, "v0.1.0"))
	assert.Equal(t, "v0.1.0", commit(t, dir, "tag"))
	assert.Equal(t, "Release v0.1.0", commit(t, dir, "log", "-1", "--format=%s"))
	assert.Equal(t, commit(t, dir, "rev-parse", "HEAD"), commit(t, dir, "rev-parse", "v0.1.0^{}"))
	assert.Contains(t, commit(t, dir, "show", "HEAD:CHANGELOG.md"), "## v0.1.0, ")

	before := commit(t, dir, "rev-parse", "HEAD")
	for name, c := range map[string]struct {
		version, want string
		change        func()
	}{
		"no version":  {"0.2.0", "not vMAJOR.MINOR.PATCH", nil},
		"old version": {"v0.0.9", "not above v0.1.0", nil},
		"v2":          {"v2.0.0", "module paths that end in /v2", nil},
		"changes": {"v0.2.0", "not committed", func() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b.go"), []byte("package a\n"), 0o600))
		}},
		"does not compile": {"v0.2.0", "undefined: x", func() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "a.go"), []byte("package a\n\nfunc F() int { return x }\n"), 0o600))
			commit(t, dir, "commit", "-qam", "Broken")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change()
			}
			head := commit(t, dir, "rev-parse", "HEAD")
			assert.ErrorContains(t, prepare(t.Context(), dir, modules, c.version), c.want)
			assert.Equal(t, head, commit(t, dir, "rev-parse", "HEAD"), "a failure restores the commit")
			assert.Equal(t, "v0.1.0", commit(t, dir, "tag"))
			commit(t, dir, "clean", "-qfd")
			commit(t, dir, "reset", "-q", "--hard", before)
		})
	}
}
