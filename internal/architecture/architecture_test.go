// Package architecture holds the module to its design: who may import whom, what it depends on, and the habits that
// every package keeps.
package architecture_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/anykind/anykind"

// mayImport says for each room which others it may import. ARCHITECTURE.md says why.
var mayImport = map[string][]string{
	"unstructured":         {},
	"transport/kubeconfig": {},
	"transport":            {"transport/kubeconfig"},
	"discovery":            {"transport"},
	"restmapper":           {"discovery"},
	"dynamic":              {"discovery", "restmapper", "transport", "unstructured"},
	"cache":                {"dynamic"},
	"controller":           {"cache", "dynamic", "unstructured"},
	"stream":               {"transport"},
}

// Two sorts of rooms stand above all others: what users run, and what only tests import.
var above = []string{"examples/", "internal/"}

type pkg struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// packages lists the module's own packages as they are for an operating system: some files are for one alone.
func packages(t *testing.T, goos string) []pkg {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json", "./...")
	list.Dir = root(t)
	list.Env = append(os.Environ(), "GOOS="+goos)
	output, err := list.Output()
	require.NoError(t, err)
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one pkg
		if err := decoder.Decode(&one); err == io.EOF {
			require.NotEmpty(t, all)
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, one)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	require.NoError(t, err)
	return string(text)
}

func TestRoomsImportOnlyWhatTheDesignLetsThem(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range packages(t, goos) {
			room := strings.TrimPrefix(p.ImportPath, module+"/")
			if slices.ContainsFunc(above, func(prefix string) bool { return strings.HasPrefix(room, prefix) }) {
				continue
			}
			allowed, known := mayImport[room]
			assert.True(t, known, "the room %s is new: say in mayImport and in ARCHITECTURE.md what it may import", room)
			for _, imported := range p.Imports {
				if other, ours := strings.CutPrefix(imported, module+"/"); ours {
					assert.Contains(t, allowed, other, "%s may not import %s", room, other)
				}
			}
		}
	}
}

func TestOnlyStreamKnowsWebSockets(t *testing.T) {
	for _, p := range packages(t, "linux") {
		if strings.TrimPrefix(p.ImportPath, module+"/") != "stream" {
			assert.NotContains(t, p.Imports, "github.com/gorilla/websocket", p.ImportPath)
		}
	}
}

func TestNothingDependsOnClientGoOrGeneratedTypes(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "./...")
	list.Dir = root(t)
	output, err := list.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(output))
	require.Contains(t, deps, module+"/dynamic")
	for _, dep := range deps {
		for _, forbidden := range []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/kubernetes"} {
			assert.False(t, dep == forbidden || strings.HasPrefix(dep, forbidden+"/"), "depends on %s", dep)
		}
	}
}

func TestEveryDependencyHasAReasonInContributing(t *testing.T) {
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	edit.Dir = root(t)
	output, err := edit.Output()
	require.NoError(t, err)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal(output, &mod))
	require.NotEmpty(t, mod.Require)
	contributing := read(t, "CONTRIBUTING.md")
	for _, dep := range mod.Require {
		if !dep.Indirect {
			assert.Contains(t, contributing, "`"+dep.Path+"`")
		}
	}
}

func TestEverySuiteFailsOnLeakedGoroutines(t *testing.T) {
	for _, p := range packages(t, "linux") {
		tests := append(p.TestGoFiles, p.XTestGoFiles...)
		if len(tests) == 0 {
			continue
		}
		assert.True(t, slices.ContainsFunc(tests, func(name string) bool {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			return bytes.Contains(text, []byte("goleak.VerifyTestMain(m)"))
		}), "%s has tests, but no TestMain that calls goleak.VerifyTestMain", p.ImportPath)
	}
}

func TestTheReadmesProgramIsTheOneThatIsCompiled(t *testing.T) {
	_, program, found := strings.Cut(read(t, "examples/quickstart/main.go"), "\n")
	require.True(t, found)
	assert.Contains(t, read(t, "README.md"), "```go\n"+program+"```")
}
