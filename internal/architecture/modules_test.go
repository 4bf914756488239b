package architecture_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modules returns the folders of the repository's Go modules, as .ci/modules lists them, and those for users.
func modules(t *testing.T) (folders, published []string) {
	t.Helper()
	for line := range strings.Lines(read(t, ".ci/modules")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0][0] != '#' {
			require.Len(t, fields, 4, "folder, for whom, components and minutes: %s", line)
			folders = append(folders, fields[0])
			if fields[1] == "users" {
				published = append(published, fields[0])
			}
		}
	}
	require.Contains(t, published, ".")
	return folders, published
}

func TestModules_AllListedForCI(t *testing.T) {
	listed, _ := modules(t)
	walk(t, ".", func(name string) {
		if filepath.Base(name) == "go.mod" {
			assert.Contains(t, listed, filepath.ToSlash(filepath.Dir(name)), ".ci/modules must list every module")
		}
	})
}

func TestModules_AllInWorkspace(t *testing.T) {
	listed, _ := modules(t)
	edit := exec.CommandContext(t.Context(), "go", "work", "edit", "-json", filepath.Join(root(t), "go.work"))
	output, err := edit.Output()
	require.NoError(t, err)
	var work struct{ Use []struct{ DiskPath string } }
	require.NoError(t, json.Unmarshal(output, &work))
	var used []string
	for _, use := range work.Use {
		used = append(used, path.Clean(use.DiskPath))
	}
	assert.ElementsMatch(t, listed, used)
}

// TestModules_UsePublicAPIOnly lets the code of a module import the public packages of other modules. Tests and fixtures also
// import fixtures: packages below internal/testing. Other packages of published modules must not, not even their own module's.
func TestModules_UsePublicAPIOnly(t *testing.T) {
	folders, published := modules(t)
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
			importer := moduleOf(folders, filepath.ToSlash(filepath.Dir(name)))
			isFixture := strings.Contains(pkg+"/", fixtures)
			switch {
			case !isInternal || forTests && isFixture:
			case isFixture && slices.Contains(published, importer):
				assert.Fail(t, name+" imports "+imported+": fixtures are for tests")
			default:
				assert.Equal(t, importer, moduleOf(folders, pkg), "%s imports %s", name, imported)
			}
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
