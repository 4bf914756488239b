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
	position := map[string]int{}
	for i, m := range modules {
		position[m.path] = i
		for _, required := range m.requires {
			assert.Less(t, position[required], i, "%s comes after %s, which it requires", m.path, required)
		}
		if m.published {
			assert.False(t, m.replaces, m.path)
		}
	}
	assert.Zero(t, position[rootPath])
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

func TestCompareAPI_IncompatibleNeedsMinorVersion(t *testing.T) {
	for name, c := range map[string]struct{ code, version, want string }{
		"compatible":              {"package a\n\nfunc F() int { return 2 }\n\nfunc G() {}\n", "v0.1.1", ""},
		"incompatible":            {"package a\n\nfunc F() string { return \"\" }\n", "v0.1.1", "F: changed from func() int to func() string"},
		"incompatible, new minor": {"package a\n\nfunc F() string { return \"\" }\n", "v0.2.0", ""},
		"removed package":         {"package main\n\nfunc main() {}\n", "v0.1.1", "anykind/a: removed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRepository(t, "v0.1.0")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "a.go"), []byte(c.code), 0o600))
			modules, err := readModules(dir)
			require.NoError(t, err)
			last, err := lastVersion(t.Context(), dir)
			require.NoError(t, err)
			assert.Equal(t, "v0.1.0", last)
			err = compareAPI(t.Context(), dir, modules, last, c.version)
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
		})
	}
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
