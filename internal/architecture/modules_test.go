package architecture_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modules returns the folders of the repository's Go modules, as .ci/modules lists them.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	for line := range strings.Lines(read(t, ".ci/modules")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0][0] != '#' {
			require.Len(t, fields, 4, "folder, for whom, components and minutes: %s", line)
			folders = append(folders, fields[0])
		}
	}
	require.Contains(t, folders, ".")
	return folders
}

func TestModules_AllListedForCI(t *testing.T) {
	listed := modules(t)
	walk(t, ".", func(name string) {
		if filepath.Base(name) == "go.mod" {
			assert.Contains(t, listed, filepath.ToSlash(filepath.Dir(name)), ".ci/modules must list every module")
		}
	})
}

// TestModules_UsePublicAPIOnly lets the code of a module import the public packages of other modules. Tests and fixtures also
// import fixtures: packages below internal/testing.
func TestModules_UsePublicAPIOnly(t *testing.T) {
	folders := modules(t)
	walk(t, ".", func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), name), nil, parser.ImportsOnly)
		require.NoError(t, err)
		forTests := strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.ToSlash(name), fixtures)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			pkg, ours := strings.CutPrefix(imported, module+"/")
			isInternal := ours && strings.Contains("/"+pkg+"/", "/internal/")
			if !isInternal || forTests && strings.Contains(pkg, fixtures) {
				continue
			}
			assert.Equal(t, moduleOf(folders, filepath.ToSlash(filepath.Dir(name))), moduleOf(folders, pkg), "%s imports %s", name, imported)
		}
	})
}

// moduleOf returns the folder of the module that has a folder: the longest match.
func moduleOf(folders []string, folder string) string {
	owner := "."
	for _, candidate := range folders {
		if (folder == candidate || strings.HasPrefix(folder, candidate+"/")) && (owner == "." || len(candidate) > len(owner)) {
			owner = candidate
		}
	}
	return owner
}

func TestMainModule_RequiresNoOther(t *testing.T) {
	assert.NotContains(t, read(t, "go.mod"), module+"/")
}

// walk calls visit with the files below a folder of the repository, named from its root.
func walk(t *testing.T, folder string, visit func(name string)) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(root(t)), folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() {
			visit(name)
		}
		return nil
	}))
}
