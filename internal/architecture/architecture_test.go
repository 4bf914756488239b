// Package architecture checks the module's design: which package may import which, what the module depends on, and the
// rules that every package follows.
package architecture_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// allowedImports lists for each package the other packages of the module that it may import. ARCHITECTURE.md says why.
var allowedImports = map[string][]string{
	"unstructured":              {},
	"unstructured/jsonpath":     {"unstructured"},
	"unstructured/manifest":     {"unstructured"},
	"readiness":                 {"unstructured"},
	"transport/kubeconfig":      {},
	"transport/kubeconfig/edit": {"transport/kubeconfig"},
	"transport":                 {"transport/kubeconfig", "transport/kubeconfig/edit"},
	"transport/rbac":            {"transport", "unstructured"},
	"discovery":                 {"transport"},
	"restmapper":                {"discovery"},
	"dynamic":                   {"discovery", "readiness", "restmapper", "shard", "transport", "unstructured"},
	"shard":                     {},
	"applyset":                  {"discovery", "dynamic", "readiness", "restmapper", "unstructured", "unstructured/manifest"},
	"storagemigration":          {"discovery", "dynamic", "restmapper", "unstructured"},
	"inventory":                 {"cache", "cache/packed", "discovery", "dynamic", "inventory/relation", "readiness", "transport", "unstructured"},
	"inventory/relation":        {"unstructured"},
	"inventory/web":             {"discovery", "inventory", "inventory/relation", "readiness", "unstructured"},
	"plan":                      {"applyset", "discovery", "dynamic", "inventory", "restmapper", "transport", "unstructured", "unstructured/manifest"},
	"schema":                    {"transport", "unstructured"},
	"cache":                     {"dynamic", "shard", "unstructured"},
	"cache/packed":              {"cache", "unstructured"},
	"controller":                {"cache", "controller/leaderelection", "controller/sharding", "controller/workqueue", "dynamic", "shard", "unstructured"},
	"controller/workqueue":      {},
	"controller/leaderelection": {"cache", "dynamic", "unstructured"},
	"controller/sharding":       {"cache", "controller/leaderelection", "dynamic", "shard", "unstructured"},
	"controller/manager":        {"cache", "controller/leaderelection", "dynamic"},
	"controller/webhook":        {"cache", "dynamic", "unstructured"},
	"controller/events":         {"controller/workqueue", "dynamic", "unstructured"},
	"fleet":                     {"cache", "controller", "controller/workqueue", "dynamic", "shard", "transport", "transport/kubeconfig", "unstructured"},
	"stream":                    {"transport"},
	"internal/atomicfile":       {},
	"internal/consistency":      {},
	"internal/document":         {"transport"},
	"internal/editdistance":     {},
	"internal/fence":            {},
	"internal/generated":        {"unstructured"},
	"internal/jsonread":         {},
	"internal/limits":           {},
	"internal/listlimit":        {},
	"internal/managedfields":    {},
	"internal/objectkey":        {},
	"internal/parallel":         {},
	"internal/pathsegment":      {},
	"internal/protobuf":         {},
	"internal/reflector":        {"transport"},
	"internal/resourcepath":     {},
	"internal/resourceversion":  {},
	"internal/retry":            {},
	"internal/sanitize":         {},
	"internal/suspend":          {},
	"internal/typememory":       {},
	"internal/yamltree":         {},
}

// allowedImporters lists the internal machinery that several packages share, and the packages that may import it. What
// one package alone uses is that package's own internal, such as transport/internal/oidc, and is not listed.
var allowedImporters = map[string][]string{
	"internal/atomicfile":      {"discovery", "schema"},
	"internal/builtingroup":    {"applyset", "plan", "readiness"},
	"internal/document":        {"discovery", "schema"},
	"internal/editdistance":    {"restmapper", "schema"},
	"internal/fence":           {"applyset", "controller", "controller/leaderelection", "controller/sharding", "transport"},
	"internal/generated":       {"applyset", "inventory", "plan"},
	"internal/jsonread":        {"discovery", "schema", "unstructured", "dynamic", "internal/protobuf", "internal/typememory"},
	"internal/limits":          {"discovery", "dynamic", "stream", "unstructured", "internal/jsonread", "internal/protobuf"},
	"internal/listlimit":       {"fleet", "inventory"},
	"internal/managedfields":   {"applyset", "plan", "storagemigration"},
	"internal/objectkey":       {"dynamic", "cache", "controller", "fleet"},
	"internal/parallel":        {"applyset", "discovery", "inventory", "plan"},
	"internal/pathsegment":     {"transport", "dynamic"},
	"internal/protobuf":        {"dynamic", "unstructured"},
	"internal/reflector":       {"discovery", "dynamic", "stream"},
	"internal/resourcepath":    {"dynamic", "stream", "transport"},
	"internal/resourceversion": {"cache", "controller", "controller/sharding", "inventory"},
	"internal/retry":           {"internal/document", "internal/listlimit", "internal/reflector", "transport", "transport/kubeconfig/edit", "applyset", "plan", "discovery", "restmapper", "dynamic", "cache", "controller", "controller/events", "controller/leaderelection", "controller/manager", "controller/sharding", "controller/webhook", "controller/workqueue", "fleet", "inventory", "schema", "storagemigration", "stream", "unstructured/manifest"},
	"internal/sanitize":        {"controller/manager", "internal/document", "internal/reflector", "transport", "discovery", "restmapper", "unstructured", "unstructured/jsonpath", "unstructured/manifest", "dynamic", "cache", "schema", "stream", "readiness", "transport/kubeconfig"},
	"internal/suspend":         {"cache", "dynamic", "internal/reflector", "inventory"},
	"internal/typememory":      {"stream", "unstructured"},
	"internal/yamltree":        {"transport/kubeconfig", "transport/kubeconfig/edit", "unstructured"},
	"internal/consistency":     {"cache", "controller"},
}

const (
	programs = "examples/"         // import any package and are imported by none
	fixtures = "internal/testing/" // imported by tests alone
	checks   = "internal/architecture"
)

type pkg struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// packages returns the module's packages as built for an operating system on amd64.
func packages(t *testing.T, goos string) []pkg {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json", "./...")
	list.Dir = root(t)
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64")
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

func TestPackages_ImportOnlyWhatIsAllowed(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range packages(t, goos) {
			name := strings.TrimPrefix(p.ImportPath, module+"/")
			if strings.HasPrefix(name+"/", programs) || strings.HasPrefix(name, fixtures) || name == checks {
				continue
			}
			for _, imported := range p.Imports {
				if other, ours := strings.CutPrefix(imported, module+"/"); ours {
					assert.NoError(t, checkImport(name, other))
				}
			}
			if owner, internal := owner(name); !internal {
				assert.Contains(t, allowedImports, name, "%s is new: list in allowedImports and in ARCHITECTURE.md what it may import", name)
			} else if owner == "" {
				assert.Contains(t, allowedImporters, name, "%s is new: list in allowedImporters which packages may import it", name)
			}
		}
	}
}

// owner returns the package whose own machinery name is: "transport" for "transport/internal/oidc", and "" for the
// module's.
func owner(name string) (owner string, internal bool) {
	if strings.HasPrefix(name, "internal/") {
		return "", true
	}
	if owner, _, internal = strings.Cut(name, "/internal/"); !internal {
		return "", false
	}
	return owner, true
}

// checkImport returns an error unless package name may import other.
func checkImport(name, other string) error {
	importer, _ := owner(name) // a package's own machinery imports what the package may
	if importer == "" {
		importer = name
	}
	switch owner, internal := owner(other); {
	case strings.HasPrefix(other, fixtures):
		return fmt.Errorf("%s imports %s: fixtures are for tests", name, other)
	case strings.HasPrefix(other, programs):
		return fmt.Errorf("%s imports %s: a program", name, other)
	case internal && owner != "":
		if name == owner || strings.HasPrefix(name, owner+"/") {
			return nil
		}
		return fmt.Errorf("%s imports %s, which is %s's own", name, other, owner)
	case internal:
		if slices.Contains(allowedImporters[other], importer) {
			return nil
		}
		return fmt.Errorf("%s imports %s and is not listed in allowedImporters", name, other)
	case slices.Contains(allowedImports[importer], other):
		return nil
	}
	return fmt.Errorf("%s imports %s and is not allowed to by allowedImports", name, other)
}

func TestCheckImport_Rules(t *testing.T) {
	for _, c := range []struct {
		name, imported string
		allowed        bool
	}{
		{"dynamic", "restmapper", true},
		{"restmapper", "dynamic", false},
		{"dynamic", "internal/retry", true},
		{"unstructured", "internal/retry", false},
		{"dynamic/internal/pager", "internal/retry", true},
		{"transport", "transport/internal/oidc", true},
		{"transport/internal/execplugin", "transport/internal/oidc", true},
		{"dynamic", "transport/internal/oidc", false},
		{"transport/internal/oidc", "transport", false},
		{"transport/internal/execplugin", "transport/kubeconfig", true},
		{"internal/retry", "transport/kubeconfig", false},
		{"dynamic", "internal/testing/cluster", false},
		{"dynamic", "examples/tour", false},
	} {
		assert.Equal(t, c.allowed, checkImport(c.name, c.imported) == nil, "%s imports %s", c.name, c.imported)
	}
}

func TestWebSockets_ImportedByStreamOnly(t *testing.T) {
	for _, p := range packages(t, "linux") {
		if name := strings.TrimPrefix(p.ImportPath, module+"/"); name != "stream" && !strings.HasPrefix(name, "stream/internal/") {
			assert.NotContains(t, p.Imports, "github.com/gorilla/websocket", p.ImportPath)
		}
	}
}

func TestModule_WithoutClientGoAndGeneratedTypes(t *testing.T) {
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

func TestDependencies_HaveReasonsInContributing(t *testing.T) {
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

func TestSuites_FailOnLeakedGoroutines(t *testing.T) {
	for _, p := range packages(t, "linux") {
		tests := append(p.TestGoFiles, p.XTestGoFiles...)
		if len(tests) == 0 {
			continue
		}
		assert.True(t, slices.ContainsFunc(tests, func(name string) bool {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			return bytes.Contains(text, []byte("goleak.VerifyTestMain(m"))
		}), "%s has tests, but no TestMain that calls goleak.VerifyTestMain", p.ImportPath)
	}
}

func TestReadme_ProgramIsTheQuickstart(t *testing.T) {
	_, program, found := strings.Cut(read(t, "examples/quickstart/main.go"), "\n")
	require.True(t, found)
	assert.Contains(t, read(t, "README.md"), "```go\n"+program+"```")
}
